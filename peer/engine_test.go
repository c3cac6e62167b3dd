package peer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// TestBuiltInEngineIsTheDefault checks that no engine next to the program's file is used.
func TestBuiltInEngineIsTheDefault(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), "p2pmpi-wasmtime")
	if err := os.WriteFile(beside, []byte("#!/bin/sh\necho another\n"), 0o755); err != nil {
		skip.Lacks(t, err)
	}
	defer os.Remove(beside)
	cfg := DefaultConfig()
	if got := cfg.chooseEngine(t.TempDir(), launch.Walls{}, zerolog.Nop()); got != launch.BuiltIn() {
		t.Errorf("the engine is %q", got.Name)
	}
	cfg.WasmEngine = "bin/engine"
	if cfg.Validate() == nil {
		t.Error("a relative path is taken: of what folder?")
	}
}
