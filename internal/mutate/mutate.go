// Package mutate breaks a rule of a package on purpose, and sees that the package's
// exploration finds it: the source with one place changed is built in place of the real
// one, which stays as it is.
package mutate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Overlay returns what the go command is to take as -overlay, for a build in which old
// is replaced by replacement in a file, relative to the package that is tested. The test fails
// unless old is there once.
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

// ExpectFound explores a scenario with an overlay: TestEveryInterleaving must fail. The
// rest is what follows in the go command's line, the package first. Nobody debugs what is
// built, and without what that takes it is built in three quarters of the time.
func ExpectFound(t *testing.T, overlay, scenario string, rest ...string) {
	t.Helper()
	only := "^TestEveryInterleaving$/^" + strings.ReplaceAll(scenario, " ", "_") + "$"
	args := []string{"test", "-vet=off", "-gcflags=-dwarf=false", "-ldflags=-s -w", "-overlay", overlay, "-run", only}
	out, err := exec.CommandContext(t.Context(), "go", append(args, rest...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestEveryInterleaving/") {
		t.Errorf("not found: %v\n%s", err, out)
	}
}
