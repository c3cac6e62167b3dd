package filetransfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestBuildNamesTheFileThatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ok"), nil)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{filepath.Join(dir, "missing"), dir, pipe} {
		_, err := Build(t.Context(), []Source{{Path: "ok", From: filepath.Join(dir, "ok")}, {Path: "bad", From: bad}})
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("source %s: got %v, want an error that names it", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, []Source{{Path: "ok", From: filepath.Join(dir, "ok")}}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: got %v", err)
	}
}

func TestBuildAndLocate(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "x"), []byte("xx"))
	writeFile(t, filepath.Join(dir, "y"), []byte("yyy"))
	if err := os.Chmod(filepath.Join(dir, "y"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	files := []Source{{Path: "b", From: filepath.Join(dir, "x")}, {Path: "a/b", From: filepath.Join(dir, "y")}}
	m, err := Build(t.Context(), files)
	want := Manifest{
		{Path: "a/b", Size: 3, Mode: 0o755, Digest: DigestOf([]byte("yyy"))},
		{Path: "b", Size: 2, Mode: 0o644, Digest: DigestOf([]byte("xx"))},
	}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Fatalf("got %v, %v; want %v", m, err, want)
	}
	if at := Locate(m, files); len(at) != 2 || at[m[0].Digest] != files[1] {
		t.Errorf("Locate returned %v", at)
	}
	if _, err := Build(t.Context(), []Source{{Path: "b", From: files[0].From}, {Path: "b", From: files[1].From}}); err == nil {
		t.Error("two files with one path were accepted")
	}
}
