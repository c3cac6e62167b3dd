// Package mutate breaks a rule of a package on purpose and checks that the package's exploration finds the fault.
// A build overlay replaces the source, so the real file remains unchanged.
package mutate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Overlay returns the value of the go command's -overlay flag for a build in which old is replaced by
// replacement in file, relative to the package under test. The test fails unless old occurs exactly once.
func Overlay(t *testing.T, file, old, replacement string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), old); n != 1 {
		t.Fatalf("%q is in %s %d times, want once", old, file, n)
	}
	original, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(file))
	write(t, mutated, []byte(strings.Replace(string(source), old, replacement, 1)))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	write(t, overlay, list)
	return overlay
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// ExpectFound runs TestEveryInterleaving for a scenario with an overlay, and checks that the test fails. The go
// command gets the further arguments rest, whose first element is the package. The build omits debug information,
// which saves a quarter of its time.
func ExpectFound(t *testing.T, overlay, scenario string, rest ...string) {
	t.Helper()
	only := "^TestEveryInterleaving$/^" + strings.ReplaceAll(scenario, " ", "_") + "$"
	args := []string{"test", "-vet=off", "-gcflags=-dwarf=false", "-ldflags=-s -w", "-overlay", overlay, "-run", only}
	out, err := exec.CommandContext(t.Context(), "go", append(args, rest...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestEveryInterleaving/") {
		t.Errorf("the exploration did not find the fault: %v\n%s", err, out)
	}
}
