package walk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWalk(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, dir, "a", "f/b", "f/g/c", "skipped/d")
	write(t, outside, "secret")
	for name, to := range map[string]string{"f/folder": outside, "f/file": filepath.Join(outside, "secret"), "f/loop": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := Walk(dir, func(e *Entry) error {
		if e.Depth() != 0 && e.Depth() != strings.Count(e.Path(), "/")+1 {
			t.Errorf("%s is at depth %d", e.Path(), e.Depth())
		}
		if e.IsFolder() && !slices.Contains(got, filepath.Dir(e.Path())) && e.Name != "." {
			t.Errorf("%s was visited before its folder", e.Path())
		}
		got = append(got, e.Path())
		if e.Name == "skipped" {
			return fs.SkipDir
		}
		return nil
	})
	slices.Sort(got)
	want := []string{".", "a", "f", "f/b", "f/file", "f/folder", "f/g", "f/g/c", "f/loop", "skipped"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	own := errors.New("error of visit")
	if err := Walk(dir, func(e *Entry) error { return own }); !errors.Is(err, own) {
		t.Errorf("Walk returned %v, want the error of visit", err)
	}
	if err := Walk(filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

// nest creates nested folders, each with two files beside the next folder.
func nest(t *testing.T, dir string, depth int, name string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range depth {
		a, z := strconv.Itoa(i)+"a", strconv.Itoa(i)+"z"
		if err := errors.Join(root.WriteFile(a, nil, 0o600), root.Mkdir(name, 0o700), root.WriteFile(z, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(name)
		root.Close()
		if err != nil {
			t.Fatal(err)
		}
		root = next
	}
	root.Close()
}

// heap returns the memory in use.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestDeepFoldersUseBoundedMemory checks that a walk of deep folders uses little memory and few descriptors, and
// visits every entry once.
func TestDeepFoldersUseBoundedMemory(t *testing.T) {
	skip.Long(t)
	dir := t.TempDir()
	nest(t, dir, MaxDepth, strings.Repeat("n", 255))
	before, open := heap(), descriptors()
	names := make(map[string]int)
	folders := 0
	err := Walk(dir, func(e *Entry) error {
		if !e.IsFolder() {
			names[e.Name]++
			return nil
		}
		if folders++; folders == MaxDepth {
			if more := heap() - before; more > 3*portion*MaxDepth {
				t.Errorf("the walk uses %d bytes", more)
			}
			if more := descriptors() - open; more > window+4 {
				t.Errorf("%d folders are open", more)
			}
		}
		return nil
	})
	if err != nil || folders != MaxDepth+1 || len(names) != 2*MaxDepth {
		t.Errorf("the walk visited %d folders and %d files, %v", folders, len(names), err)
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%s was visited %d times", name, n)
		}
	}
}

// descriptors returns the number of open descriptors, where the system reports it.
func descriptors() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

func TestTooDeepFolders(t *testing.T) {
	skip.Long(t)
	dir := t.TempDir()
	nest(t, dir, MaxDepth+1, "n")
	if err := Walk(dir, func(*Entry) error { return nil }); !errors.Is(err, ErrDeep) {
		t.Errorf("Walk returned %v, want ErrDeep", err)
	}
}

// TestWideFoldersUseBoundedMemory checks that a walk does not remember the names in a large folder.
func TestWideFoldersUseBoundedMemory(t *testing.T) {
	const files = 30000
	dir := t.TempDir()
	write(t, dir, "file")
	for i := range files - 1 {
		if err := os.Link(filepath.Join(dir, "file"), filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	before, n := heap(), 0
	err := Walk(dir, func(e *Entry) error {
		if n++; n == files {
			if more := heap() - before; more > 1<<20 {
				t.Errorf("the walk uses %d bytes", more)
			}
		}
		return nil
	})
	if err != nil || n != files+1 {
		t.Errorf("the walk visited %d names, %v", n, err)
	}
}

// TestFolderMovedDuringTheWalk checks that the walk does not leave the tree.
func TestFolderMovedDuringTheWalk(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "dir")
	write(t, dir, "file")
	write(t, top, "outside/secret")
	nest(t, dir, 3*window, "n")
	err := Walk(dir, func(e *Entry) error {
		if e.Name == "secret" {
			t.Error("the walk left the tree")
		}
		if e.Depth() == 2*window && e.IsFolder() {
			half := filepath.Join(dir, strings.Repeat("n/", window/2))
			return os.Rename(half, filepath.Join(top, "outside/n"))
		}
		return nil
	})
	if !errors.Is(err, errMoved) {
		t.Errorf("Walk returned %v, want errMoved", err)
	}
}

// TestFolderRemovedDuringTheWalk checks that the walk skips the folder.
func TestFolderRemovedDuringTheWalk(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/b/c/file", "a/other")
	err := Walk(dir, func(e *Entry) error {
		if e.Name == "c" {
			return os.RemoveAll(filepath.Join(dir, "a/b"))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
