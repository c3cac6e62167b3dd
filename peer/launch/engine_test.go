package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// TestEngineIsExamined checks that an engine is examined in the sandbox, and that the error for one that does
// not work states why.
func TestEngineIsExamined(t *testing.T) {
	home := t.TempDir()
	available := ExamineSandbox(home)
	self, err := os.Executable() // it is also the built-in runner
	if err != nil {
		t.Fatal(err)
	}
	if e, err := ExamineEngine(home, self, available); err != nil || e.Name != BuiltIn().Name {
		t.Errorf("this engine is %q (%v), want %q", e.Name, err, BuiltIn().Name)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"silent":     {"#!/bin/sh\nexit 3", "status 3"},
		"in trouble": {"#!/bin/sh\necho no library; exit 1", "no library"},
		"none":       {"#!/bin/sh\necho ../../etc/passwd", "it is not an engine"},
		"older":      {"#!/bin/sh\necho wasmtime-v39", "another version"},
		"no program": {"nothing", "execute"},
	} {
		path := filepath.Join(t.TempDir(), "engine")
		if err := os.WriteFile(path, []byte(tc.text), 0o755); err != nil {
			t.Fatal(err)
		}
		if e, err := ExamineEngine(home, path, available); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v (%v), want %q", name, e, err, tc.want)
		}
	}
	if e, err := ExamineEngine(home, filepath.Join(home, "missing"), available); err == nil {
		t.Errorf("a missing file is accepted as engine %v", e)
	}
	if left, _ := os.ReadDir(filepath.Join(home, scratchFolder)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(filepath.Join(home, engineFile)); err == nil {
		t.Error("the copy of an engine that does not work was not removed")
	}
}

// TestReplacedEngineContinues checks that the peer uses the engine as examined after its owner has
// rebuilt or removed the original.
func TestReplacedEngineContinues(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		skip.Lacks(t, err)
	}
	path := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	e, err := ExamineEngine(home, path, ExamineSandbox(home))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3"), 0o755); err != nil { // the same file
		t.Fatal(err)
	}
	for _, change := range []func() error{func() error { return nil }, func() error { return os.Remove(path) }} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		j := newModuleJob(t, e, idleModule(1), limits.Grant{})
		j.start()
		if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	}
}

// TestStaleEngineIsRemoved checks that an engine is removed when the home's peer no longer uses it.
func TestStaleEngineIsRemoved(t *testing.T) {
	kept := filepath.Join(t.TempDir(), engineFile)
	if err := os.WriteFile(kept, nil, 0o500); err != nil {
		t.Fatal(err)
	}
	forgetEngine(filepath.Dir(kept), Engine{"another", kept})
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the peer's own engine was removed: %v", err)
	}
	forgetEngine(filepath.Dir(kept), BuiltIn())
	if _, err := os.Stat(kept); err == nil {
		t.Error("an engine that is no longer used was not removed")
	}
}
