package filetransfer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content returns size bytes, which are equal for equal seeds.
func content(seed byte, size int) []byte {
	b := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{seed})
	_, _ = rng.Read(b) // never fails
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t testing.TB, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: got %d bytes that differ from the wanted %d", path, len(got), len(want))
	}
}

func openStore(t testing.TB, dir string, limit int64) *Store {
	t.Helper()
	s, err := OpenStore(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *Store, job string, b []byte) Digest {
	t.Helper()
	d, err := s.Put(t.Context(), job, b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wantBytes compares the store's count with the files in its folder.
func wantBytes(t testing.TB, s *Store) {
	t.Helper()
	var sum int64
	err := filepath.Walk(string(s.dir), func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Bytes(); got != sum || got > s.limit {
		t.Fatalf("the store counts %d bytes, its folder contains %d, the limit is %d", got, sum, s.limit)
	}
}

// tree writes n small files and returns them as sources.
func tree(t testing.TB, dir string, n int) []Source {
	t.Helper()
	files := make([]Source, n)
	for i := range files {
		name := fmt.Sprintf("d%03d/f%05d.go", i%100, i)
		files[i] = Source{Path: name, From: filepath.Join(dir, name)}
		writeFile(t, files[i].From, fmt.Appendf(nil, "package f%d // %x\n", i, content(byte(i), 300)))
	}
	return files
}
