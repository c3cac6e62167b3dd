package filetransfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// staged stores contents under paths and returns their manifest.
func staged(t testing.TB, s *Store, files map[string][]byte) Manifest {
	t.Helper()
	dir := t.TempDir()
	var sources []Source
	for p, b := range files {
		sources = append(sources, Source{Path: p, From: filepath.Join(dir, p)})
		writeFile(t, filepath.Join(dir, p), b)
		put(t, s, "job", b)
	}
	m, err := Build(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMaterializeCreatesFiles(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	m := staged(t, s, map[string][]byte{"prog": content(1, 300), "in/a": content(2, 10), "in/deep/b": nil})
	m[2].Mode = 0o755 // in walk order: in/a, in/deep/b, prog
	m[0].Mode = 0o004
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "prog"), []byte("an older one"))
	for range 2 { // existing files are replaced
		if err := s.Materialize(t.Context(), m, dir); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, filepath.Join(dir, "prog"), content(1, 300))
	wantFile(t, filepath.Join(dir, "in/a"), content(2, 10))
	wantFile(t, filepath.Join(dir, "in/deep/b"), nil)
	for name, want := range map[string]os.FileMode{"prog": 0o700, "in/a": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&want != want {
			t.Errorf("%s: %v, %v; want at least %v", name, info.Mode(), err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the target folder contains %v, %v", entries, err)
	}
}

// TestMaterializeNewReplacesNoFile: an existing file or link is not replaced, and the files that an
// interrupted collection has written are accepted.
func TestMaterializeNewReplacesNoFile(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	m := staged(t, s, map[string][]byte{"d/a": content(1, 300)})
	dir := t.TempDir()
	for range 2 {
		if err := s.MaterializeNew(t.Context(), m, dir); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, filepath.Join(dir, "d/a"), content(1, 300))
	for name, plant := range map[string]func(string) error{
		"file": func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"link": func(p string) error { return os.Symlink("../elsewhere", p) },
	} {
		dir := t.TempDir()
		err := os.Mkdir(filepath.Join(dir, "d"), 0o700)
		if err := errors.Join(err, plant(filepath.Join(dir, "d/a"))); err != nil {
			t.Fatal(err)
		}
		if err := s.MaterializeNew(t.Context(), m, dir); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: got %v, want fs.ErrExist", name, err)
		}
		if left, err := os.ReadDir(filepath.Join(dir, "d")); err != nil || len(left) != 1 {
			t.Errorf("%s: the target folder contains %v, %v", name, left, err)
		}
	}
}

func TestT1CorruptedCacheNeverRuns(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	b := content(1, 300)
	m := staged(t, s, map[string][]byte{"prog": b})
	bad := append([]byte{b[0] ^ 1}, b[1:]...)
	writeFile(t, s.Path(m[0].Digest), bad)
	dir := t.TempDir()
	err := s.Materialize(t.Context(), m, dir)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), m[0].Digest.String()) {
		t.Fatalf("Materialize returned %v, want ErrMissing with the digest", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the folder contains %v", entries)
	}
	if s.Has(m[0].Digest) {
		t.Error("the corrupted content is still in the store")
	}
	put(t, s, "job", b) // as a second fetch would do
	if err := s.Materialize(t.Context(), m, dir); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "prog"), b)
}

func TestT1CorruptedManifestIsNotRead(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	b, err := Manifest{{Path: "a"}}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	d := put(t, s, "job", b)
	if m, err := s.Manifest(t.Context(), d); err != nil || len(m) != 1 {
		t.Fatalf("the manifest is %v, %v, want one entry", m, err)
	}
	other, _ := Manifest{{Path: "b"}}.Marshal()
	writeFile(t, s.Path(d), other)
	if _, err := s.Manifest(t.Context(), d); !errors.Is(err, ErrMissing) || s.Has(d) {
		t.Errorf("got %v, still there %v", err, s.Has(d))
	}
}

func TestT3SymbolicLinksDoNotEscape(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	m := staged(t, s, map[string][]byte{"sub/file": []byte("new")})
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "file"), []byte("the owner's"))

	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(dir, "sub")); err != nil {
			t.Fatal(err)
		}
		if err := s.Materialize(t.Context(), m, dir); err == nil {
			t.Error("Materialize wrote through a symbolic link")
		}
	})
	t.Run("file", func(t *testing.T) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "sub/other"), nil)
		if err := os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, "sub/file")); err != nil {
			t.Fatal(err)
		}
		if err := s.Materialize(t.Context(), m, dir); err != nil {
			t.Fatal(err)
		}
		wantFile(t, filepath.Join(dir, "sub/file"), []byte("new"))
	})
	wantFile(t, filepath.Join(outside, "file"), []byte("the owner's"))
}

func TestMaterializeReportsAnObstructingFolder(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	m := staged(t, s, map[string][]byte{"out": []byte("x")})
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "out/keep"), []byte("kept"))
	err := s.Materialize(t.Context(), m, dir)
	if !errors.Is(err, syscall.EISDIR) || !strings.Contains(err.Error(), "a directory exists at its path") {
		t.Errorf("Materialize returned %v, want EISDIR", err)
	}
	wantFile(t, filepath.Join(dir, "out/keep"), []byte("kept"))
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the target folder contains %v", entries)
	}
}
