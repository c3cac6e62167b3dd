package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEngineIsTried within the walls: what does not work, or is none, is told.
func TestEngineIsTried(t *testing.T) {
	home := t.TempDir()
	walls := ExamineWalls(home)
	self, err := os.Executable() // which is the runner that is built in
	if err != nil {
		t.Fatal(err)
	}
	if e, err := ExamineEngine(home, self, walls); err != nil || e.Name != BuiltIn().Name {
		t.Errorf("this engine is %q (%v), want %q", e.Name, err, BuiltIn().Name)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"silent":     {"#!/bin/sh\nexit 3", "status 3"},
		"in trouble": {"#!/bin/sh\necho no library; exit 1", "no library"},
		"none":       {"#!/bin/sh\necho ../../etc/passwd", "it is none"},
		"no program": {"nothing", "execute"},
	} {
		path := filepath.Join(t.TempDir(), "engine")
		if err := os.WriteFile(path, []byte(tc.text), 0o755); err != nil {
			t.Fatal(err)
		}
		if e, err := ExamineEngine(home, path, walls); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v (%v), want %q", name, e, err, tc.want)
		}
	}
	if e, err := ExamineEngine(home, filepath.Join(home, "missing"), walls); err == nil {
		t.Errorf("what is not there is %v", e)
	}
	if left, _ := os.ReadDir(filepath.Join(home, scratchFolder)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
