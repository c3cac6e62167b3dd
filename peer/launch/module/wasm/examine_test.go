package wasm

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/version"
)

// TestEngineOfAnotherVersionIsRefused checks that an engine built from another version is refused, since its
// formats may differ.
func TestEngineOfAnotherVersionIsRefused(t *testing.T) {
	for said, want := range map[string]string{
		fmt.Sprintf("engine-1 protocol %d runner %d", version.Protocol, runner): "",
		"engine-1": "another version",
		fmt.Sprintf("engine-1 protocol %d runner %d", version.Protocol-1, runner): "another version",
		fmt.Sprintf("engine-1 protocol %d runner %d", version.Protocol, runner+1): "another version",
		fmt.Sprintf("../x protocol %d runner %d", version.Protocol, runner):       "it is not an engine",
		"": "it is not an engine",
	} {
		name, err := Examined(said)
		if want == "" && (err != nil || name != "engine-1") {
			t.Errorf("%q: %q (%v)", said, name, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q (%v), want %q", said, name, err, want)
		}
	}
}

// TestExaminedModuleMakesCalls checks that the examined module makes its calls before it reads beyond its
// memory.
func TestExaminedModuleMakesCalls(t *testing.T) {
	t.Chdir(t.TempDir())
	said := stdout(t, func() {
		if status := examine(t.Context(), Wazero{}); status != 0 {
			t.Errorf("exit status %d", status)
		}
	})
	if name, err := Examined(strings.TrimSpace(said)); err != nil || name != (Wazero{}).Name() {
		t.Errorf("%q: %q (%v)", said, name, err)
	}
	module, err := Wazero{}.Load(t.Context(), []byte(examineModule), compiled, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(Config{}, nil)
	defer h.close()
	module.Run(t.Context(), h)
	if h.clock.since == 0 {
		t.Error("the test module did not read the clock")
	}
}

// stdout returns the bytes that during writes to standard output, which must fit into a pipe.
func stdout(t *testing.T, during func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	before := os.Stdout
	os.Stdout = write
	during()
	os.Stdout = before
	write.Close()
	b, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestConfigWithUnknownFieldsIsRefused checks that a config with unknown fields is refused.
func TestConfigWithUnknownFieldsIsRefused(t *testing.T) {
	if _, _, err := parse([]string{`{"Compile":true,"Fuel":7}`}); err == nil {
		t.Error("the unknown field was accepted")
	}
	if c, rest, err := parse(Config{Compile: true}.Arguments([]string{"a"})); err != nil || !c.Compile || len(rest) != 1 {
		t.Errorf("a valid config is parsed as %+v, %q (%v)", c, rest, err)
	}
}
