package filetransfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
		_, err := Build(t.Context(), []Source{{"ok", filepath.Join(dir, "ok")}, {"bad", bad}})
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, []Source{{"ok", filepath.Join(dir, "ok")}}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestBuildAndLocate(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "x"), []byte("xx"))
	writeFile(t, filepath.Join(dir, "y"), []byte("yyy"))
	if err := os.Chmod(filepath.Join(dir, "y"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	files := []Source{{"b", filepath.Join(dir, "x")}, {"a/b", filepath.Join(dir, "y")}}
	m, err := Build(t.Context(), files)
	want := Manifest{
		{Path: "a/b", Size: 3, Mode: 0o755, Digest: DigestOf([]byte("yyy"))},
		{Path: "b", Size: 2, Mode: 0o644, Digest: DigestOf([]byte("xx"))},
	}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Fatalf("got %v, %v; want %v", m, err, want)
	}
	if at := Locate(m, files); len(at) != 2 || at[m[0].Digest] != files[1].From {
		t.Errorf("located %v", at)
	}
	if _, err := Build(t.Context(), []Source{{"b", files[0].From}, {"b", files[1].From}}); err == nil {
		t.Error("one path for two files was taken")
	}
}

func TestMatch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.out", "b.txt", "res/a.out", "res/deep/c.out", "other/d.out"} {
		writeFile(t, filepath.Join(dir, name), nil)
	}
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.out"), nil)
	for link, to := range map[string]string{"link.out": filepath.Join(outside, "secret.out"), "res/out": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
	}{
		{"none", nil, nil},
		{"top only", []string{"*.out"}, []string{"a.out"}},
		{"in a folder", []string{"res/*.out"}, []string{"res/a.out"}},
		{"a folder", []string{"res"}, []string{"res/a.out", "res/deep/c.out"}},
		{"folders", []string{"*/*.out"}, []string{"other/d.out", "res/a.out"}},
		{"several, each file once", []string{"a.*", "*.out", "b.txt"}, []string{"a.out", "b.txt"}},
		{"everything but links", []string{"*"}, []string{"a.out", "b.txt", "other/d.out", "res/a.out", "res/deep/c.out"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Match(t.Context(), dir, tt.patterns)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, f.Path)
				if f.From != filepath.Join(dir, f.Path) {
					t.Errorf("%s is said to be at %s", f.Path, f.From)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"", "/etc/*", "../*", "[", "a//b"} {
		if _, err := Match(t.Context(), dir, []string{bad}); err == nil {
			t.Errorf("pattern %q was taken", bad)
		}
	}
}
