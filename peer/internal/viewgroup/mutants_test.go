package viewgroup

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "build the core with each rule broken, and see that exploring finds it")

// A mutant is the core with one rule broken, and the scenario that shows it.
type mutant struct {
	rule     string
	file     string
	old      string // occurs once
	new      string
	scenario string
}

var mutants = []mutant{
	{"what is in the log is true when it is committed", "member.go",
		"range r.CommittedEntries {", "range r.Entries {", "two wishes, a cut"},
	{"what a member wants is not true for that", "member.go",
		"m.wanted = append(m.wanted, c)", "m.wanted = append(m.wanted, c)\n\t\tm.view, _ = c.Apply(m.view)", "two wishes"},
	{"a change that changes nothing makes no view", "member.go",
		"if next, changed := c.Apply(m.view); changed {", "if next, _ := c.Apply(m.view); true {", "two wishes"},
	{"what has been lost is proposed again", "member.go",
		"\t\tm.offer(c)\n", "\t\t_ = c\n", "an old leader comes back"},
	{"what is agreed on is wanted no more", "member.go",
		"func(w Change) bool { return w == c }", "func(w Change) bool { return false }", "two wishes"},
	{"who reaches no majority says so", "member.go",
		"case m.broken != nil || silence > cutOffTicks:", "case m.broken != nil:", "two wishes, a cut"},
	{"what a member has been sent it keeps", "member.go",
		"if err := m.store.Append(r.Entries); err != nil {", "if err := m.store.Append(nil); err != nil {", "two wishes"},
}

// core are the files that exploring takes, without those of the service: a mutant is
// built in a second.
var core = []string{
	"doc.go", "change.go", "member.go", "membership.go", "logger.go",
	"world_test.go", "whole_test.go", "explore_test.go", "norace_test.go",
}

// TestMutantsAreOfThisSource holds that every mutant can be made.
func TestMutantsAreOfThisSource(t *testing.T) {
	known := make(map[string]bool)
	for _, sc := range scenarios {
		known[sc.name] = true
	}
	for _, m := range mutants {
		if source, err := os.ReadFile(m.file); err != nil || strings.Count(string(source), m.old) != 1 {
			t.Errorf("%s: %q is in %s %d times, %v; want once", m.rule, m.old, m.file, strings.Count(string(source), m.old), err)
		}
		if !known[m.scenario] {
			t.Errorf("%s: no scenario %q", m.rule, m.scenario)
		}
	}
}

// TestMutantsAreFound builds the core with each rule broken, and explores it:
// TestEveryInterleaving must fail. It runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		return
	}
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			if out, err := m.explore(t); err == nil || !strings.Contains(out, "--- FAIL: TestEveryInterleaving/") {
				t.Errorf("not found: %v\n%s", err, out)
			}
		})
	}
}

// explore runs the scenario of m with the source of m in place of the real one.
func (m mutant) explore(t *testing.T) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {real: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		t.Fatal(err)
	}
	only := "^TestEveryInterleaving$/^" + strings.ReplaceAll(m.scenario, " ", "_") + "$"
	args := append([]string{"test", "-vet=off", "-overlay", overlay, "-run", only}, core...)
	out, err := exec.Command("go", append(args, "-states", "1500")...).CombinedOutput()
	return string(out), err
}
