package wasm

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
)

func TestClockIsTheSameForAllWhoReadItAlike(t *testing.T) {
	read := func() (all []int64) {
		c := newClock(time.Unix(1000, 0))
		for range 3 {
			sec, nsec := c.walltime()
			all = append(all, sec, int64(nsec), c.nanotime())
		}
		c.reach(2.5)
		c.reach(1) // no time goes back
		return append(all, c.nanotime())
	}
	first := read()
	for i, v := range read() {
		if v != first[i] {
			t.Errorf("reading %d: %d and %d", i, v, first[i])
		}
	}
	if first[0] != 1000 || first[2] <= 0 || first[5] <= first[2] || first[len(first)-1] <= int64(2500*time.Millisecond) {
		t.Errorf("readings %v", first)
	}
}

func TestRandomNumbersFollowFromTheSeed(t *testing.T) {
	draw := func(seed string) string {
		b := make([]byte, 64)
		io.ReadFull(newRandom(seed), b)
		return string(b)
	}
	first, again := draw("a"), draw("a")
	if first != again || first == draw("b") {
		t.Error("want the same of one seed, and others of another")
	}
}

func TestNoPathLeadsOutOfScratch(t *testing.T) {
	outside, folder := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := scratch{sysfs.DirFS(folder)}
	if errno := s.Symlink(outside, "way"); errno != wsys.EPERM {
		t.Errorf("symbolic link: %v", errno)
	}
	if errno := s.Symlink("file", "way"); errno != wsys.EPERM {
		t.Errorf("symbolic link within: %v", errno)
	}
}

func TestStoreGivesBackWhatWasAdded(t *testing.T) {
	dir := t.TempDir()
	made, module := filepath.Join(dir, "made"), filepath.Join(dir, "m.wasm")
	for name, content := range map[string]string{module: "module", filepath.Join(made, compiled, "a/b"): "code"} {
		os.MkdirAll(filepath.Dir(name), 0o700)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStore(filepath.Join(dir, "store"))
	if s.Has("d1") {
		t.Fatal("it has what was not added")
	}
	if err := s.Add("d1", module, made); err != nil || !s.Has("d1") {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(s.Path("d1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	got, err := unpack(bytes.NewReader(kept))
	code, _ := os.ReadFile(filepath.Join(compiled, "a/b"))
	if err != nil || string(got) != "module" || string(code) != "code" {
		t.Errorf("got %q and %q, %v", got, code, err)
	}
	for _, cut := range []int{0, 100, maxHeader, maxHeader + 8} {
		t.Chdir(t.TempDir())
		if _, err := unpack(bytes.NewReader(kept[:cut])); err == nil {
			t.Errorf("%d bytes of it are taken", cut)
		}
	}
}

func TestPages(t *testing.T) {
	for bytes, want := range map[uint64]uint32{0: maxPages, 1: 1, pageSize: 1, 10*pageSize + 1: 10, 1 << 40: maxPages} {
		if got := pages(bytes); got != want {
			t.Errorf("%d bytes: %d pages, want %d", bytes, got, want)
		}
	}
}

// FuzzUnpack reads any file of a store: what is laid out stays in its folder.
func FuzzUnpack(f *testing.F) {
	for _, h := range []string{`[{}]`, `[{"Size":4},{"Path":"a","Size":2}]`, `[{"Size":1},{"Path":"../a","Size":2}]`, `[{"Size":-1}]`, `[{},{"Path":"a","Size":-1}]`} {
		f.Add(h, []byte("contents"))
	}
	f.Fuzz(func(t *testing.T, h string, contents []byte) {
		folder := t.TempDir()
		inner := filepath.Join(folder, "inner")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(inner)
		unpack(io.MultiReader(bytes.NewReader(append([]byte(h), bytes.Repeat([]byte(" "), max(0, maxHeader-len(h)))...)), bytes.NewReader(contents)))
		if entries, _ := os.ReadDir(folder); len(entries) != 1 {
			t.Errorf("laid out beside its folder: %v", entries)
		}
	})
}
