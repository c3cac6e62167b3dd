package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestMeasure(t *testing.T) {
	top := t.TempDir()
	folder, outside := filepath.Join(top, "scratch"), filepath.Join(top, "outside")
	if n, err := Measure(folder); n != 0 || err != nil {
		t.Errorf("of no folder: %d, %v", n, err)
	}
	locked := filepath.Join(folder, "locked")
	for _, d := range []string{locked, outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const size = 64 << 10
	for _, f := range []string{filepath.Join(locked, "file"), filepath.Join(outside, "file")} {
		if err := os.WriteFile(f, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(locked, "file"), filepath.Join(folder, "again")); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"folder": outside, "file": filepath.Join(outside, "file")} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{locked, folder, outside} {
		if err := os.Chmod(d, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(outside, 0o700) })
	n, err := Measure(folder) // it opens what denies it, at once
	if err != nil || n < size+4*leastEntry || n >= 2*size {
		t.Errorf("got %d, %v; want the file once, and what else there is", n, err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("outside: %v, %v", info.Mode(), err)
	}
}

// BenchmarkMeasure is of a folder with 25,000 empty files.
func BenchmarkMeasure(b *testing.B) {
	folder := b.TempDir()
	for i := range 25000 {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if n, err := Measure(folder); err != nil || n < 25000*leastEntry {
			b.Fatal(n, err)
		}
	}
}

// TestMovedFileCountsOnce, although it is found in two folders.
func TestMovedFileCountsOnce(t *testing.T) {
	const size = 2 * largeFile
	folder := t.TempDir()
	for _, name := range []string{"a", "z"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	from, to := filepath.Join(folder, "a", "file"), filepath.Join(folder, "z", "file")
	if err := os.WriteFile(from, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := measurement{folder: folder, root: root, seen: make(map[[2]uint64]bool)}
	if err := errors.Join(m.walk("a"), os.Rename(from, to), m.walk("z")); err != nil || m.sum < size || m.sum >= 2*size {
		t.Errorf("got %d, %v; want the file once", m.sum, err)
	}
}
