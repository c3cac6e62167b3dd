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

// A Mutant is the code of a package with one rule broken, and a scenario of the exploration that reveals it. The type
// is an alias, so that go vet accepts its literals in other packages without the names of the fields.
type Mutant = struct {
	Rule     string
	File     string // relative to the package
	Old      string // occurs exactly once in File
	New      string // replaces Old
	Scenario string
}

// ExpectApply checks that each mutant still applies: the code that it replaces occurs once, and its scenario exists.
func ExpectApply[S any](t *testing.T, mutants []Mutant, scenarios []S, name func(S) string) {
	t.Helper()
	known := make(map[string]bool)
	for _, sc := range scenarios {
		known[name(sc)] = true
	}
	for _, m := range mutants {
		t.Run(m.Rule, func(t *testing.T) {
			overlay(t, m)
			if !known[m.Scenario] {
				t.Errorf("no scenario %q", m.Scenario)
			}
		})
	}
}

// ExpectFound builds each mutant, and checks that TestEveryInterleaving then fails for its scenario. The go command
// gets the further arguments rest, which begin with the package or its files.
func ExpectFound(t *testing.T, mutants []Mutant, rest ...string) {
	t.Helper()
	for _, m := range mutants {
		t.Run(m.Rule, func(t *testing.T) {
			t.Parallel()
			expectFound(t, m, rest)
		})
	}
}

// overlay returns the value of the go command's -overlay flag for a build of the mutant. The test fails unless Old
// occurs exactly once.
func overlay(t *testing.T, m Mutant) string {
	t.Helper()
	source, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		t.Fatalf("%q is in %s %d times, want once", m.Old, m.File, n)
	}
	original, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(m.File))
	write(t, mutated, []byte(strings.Replace(string(source), m.Old, m.New, 1)))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	write(t, file, list)
	return file
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// expectFound builds without debug information, which saves a quarter of the time.
func expectFound(t *testing.T, m Mutant, rest []string) {
	t.Helper()
	only := "^TestEveryInterleaving$/^" + strings.ReplaceAll(m.Scenario, " ", "_") + "$"
	args := []string{"test", "-vet=off", "-gcflags=-dwarf=false", "-ldflags=-s -w", "-overlay", overlay(t, m), "-run", only}
	out, err := exec.CommandContext(t.Context(), "go", append(args, rest...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestEveryInterleaving/") {
		t.Errorf("the exploration did not find the fault: %v\n%s", err, out)
	}
}
