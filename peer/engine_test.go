package peer

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEngineIsLookedForBesideThisProgram unless its owner says which one it is to be.
func TestEngineIsLookedForBesideThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), engineBeside)
	for _, there := range []bool{false, true} {
		if there {
			if err := os.WriteFile(beside, nil, 0o600); err != nil {
				t.Skipf("beside this program: %v", err)
			}
			defer os.Remove(beside)
		}
		for named, want := range map[string]string{builtIn: "", "": map[bool]string{true: beside}[there], "/opt/engine": "/opt/engine"} {
			if got := (Config{WasmEngine: named}).engine(); got != want {
				t.Errorf("named %q, one is beside: %v: %q, want %q", named, there, got, want)
			}
		}
	}
	c := DefaultConfig()
	c.WasmEngine = "bin/engine"
	if c.Validate() == nil {
		t.Error("a relative path is taken: of what folder?")
	}
}
