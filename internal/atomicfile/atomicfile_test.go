package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kept")
	for _, contents := range []string{"first and longer", "second", ""} {
		if err := Write(path, []byte(contents)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != contents {
			t.Errorf("got %q, %v; want %q", got, err, contents)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("got %v, %v; want a file that only its owner can access", info.Mode(), err)
	}
	wantAlone(t, dir)
}

// TestWriteDoesNotReplaceAFolder checks that Write fails if path is a folder.
func TestWriteDoesNotReplaceAFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kept")
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new")); err == nil {
		t.Error("a folder was replaced")
	}
	wantAlone(t, dir)
	if err := Write(filepath.Join(dir, "missing", "kept"), nil); err == nil {
		t.Error("a file was written into a missing folder")
	}
}

// wantAlone checks that dir contains only the written file.
func wantAlone(t *testing.T, dir string) {
	t.Helper()
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v; want only the written file", all, err)
	}
}
