package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	wsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
)

func TestClockIsDeterministic(t *testing.T) {
	read := func() (all []int64) {
		c := newClock(time.Unix(1000, 0))
		for range 3 {
			sec, nsec := c.walltime()
			all = append(all, sec, int64(nsec), c.nanotime())
		}
		c.reach(2.5)
		c.reach(1) // time does not go backwards
		c.pass(-time.Hour)
		c.pass(time.Second)
		return append(all, c.nanotime())
	}
	first := read()
	for i, v := range read() {
		if v != first[i] {
			t.Errorf("reading %d: %d and %d", i, v, first[i])
		}
	}
	if first[0] != 1000 || first[2] <= 0 || first[5] <= first[2] || first[len(first)-1] <= int64(3500*time.Millisecond) {
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
		t.Error("want equal numbers for equal seeds, and different numbers for different seeds")
	}
}

func TestPathsStayInScratch(t *testing.T) {
	outside, folder := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := scratch{FS: sysfs.DirFS(folder)}
	if errno := s.Symlink(outside, "way"); errno != wsys.EPERM {
		t.Errorf("symbolic link: %v", errno)
	}
	if errno := s.Symlink("file", "way"); errno != wsys.EPERM {
		t.Errorf("symbolic link within: %v", errno)
	}
}

func TestStoreReturnsAddedModules(t *testing.T) {
	dir := t.TempDir()
	made, module := filepath.Join(dir, "made"), filepath.Join(dir, "m.wasm")
	for name, content := range map[string]string{module: "module", filepath.Join(made, compiled, "a/b"): "code"} {
		os.MkdirAll(filepath.Dir(name), 0o700)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStore(filepath.Join(dir, "store"), "engine")
	if s.Has("d1") {
		t.Fatal("the store contains a module that was not added")
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
			t.Errorf("a file cut to %d bytes was accepted", cut)
		}
	}
}

// TestStoreRefusesAModuleThatFillsIt adds a module whose compiled code is too large.
func TestStoreRefusesAModuleThatFillsIt(t *testing.T) {
	dir := t.TempDir()
	made, module := filepath.Join(dir, "made"), filepath.Join(dir, "m.wasm")
	code := filepath.Join(made, compiled, "code")
	if err := errors.Join(os.MkdirAll(filepath.Dir(code), 0o700), os.WriteFile(module, []byte(empty), 0o600),
		os.WriteFile(code, nil, 0o600), os.Truncate(code, maxEntry)); err != nil {
		t.Fatal(err)
	}
	s := NewStore(filepath.Join(dir, "store"), "engine")
	if err := s.Add("d1", module, made); err == nil || s.Has("d1") {
		t.Errorf("the module was stored (%v)", err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "store")); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}

// TestModulesInUseAreNotEvicted checks that a taken module, and a file that is being written, survive
// additions by others.
func TestModulesInUseAreNotEvicted(t *testing.T) {
	dir := t.TempDir()
	s, module := NewStore(filepath.Join(dir, "store"), "engine"), filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(module, []byte(empty), 0o600); err != nil {
		t.Fatal(err)
	}
	if taken, err := s.Take("d1", module); taken || err != nil {
		t.Fatalf("Take of a missing module: %v, %v", taken, err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, compiled), 0o700), s.Add("d1", module, dir)); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(s.Path("d1"))
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := s.Take("d1", module); !taken || err != nil {
		t.Fatalf("Take of a stored module: %v, %v", taken, err)
	}
	writing := filepath.Join(dir, "store", "new-1")
	if err := errors.Join(os.WriteFile(writing, nil, 0o600), os.Truncate(writing, maxStore)); err != nil {
		t.Fatal(err)
	}
	s.prune("d2")
	if s.Has("d1") {
		t.Error("the store exceeds its limit")
	}
	if _, err := os.Stat(writing); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(module); !bytes.Equal(got, kept) {
		t.Errorf("the job has %d bytes, want %d (%v)", len(got), len(kept), err)
	}
}

// TestStoreIsBounded exceeds the bound, and checks that the least recently used module is removed.
func TestStoreIsBounded(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir, "engine")
	for i := range 1 + maxStore/maxEntry {
		path := s.Path(fmt.Sprint("d", i))
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxEntry), os.Chtimes(path, time.Time{}, time.Unix(int64(i), 0))); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Has("d0") { // this makes it the most recently used
		t.Fatal("d0 is not in the store")
	}
	s.prune("d4")
	for i, want := range []bool{true, false, true, true, true} {
		if digest := fmt.Sprint("d", i); s.Has(digest) != want {
			t.Errorf("%s is stored: %v, want %v", digest, !want, want)
		}
	}
}

// TestModuleLockIsExclusive checks that only one caller at a time holds the lock, and that a waiting
// caller can give up.
func TestModuleLockIsExclusive(t *testing.T) {
	s := NewStore(t.TempDir(), "engine")
	unlock, err := s.Lock(t.Context(), "d1")
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := NewStore(s.dir, "engine").Lock(impatient, "d1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second caller gets the lock: %v", err)
	}
	other, err := s.Lock(t.Context(), "d2")
	if err != nil {
		t.Fatal(err)
	}
	other()
	unlock()
	again, err := s.Lock(t.Context(), "d1")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if left, _ := os.ReadDir(s.dir); len(left) != 0 {
		t.Errorf("remaining files: %v", left)
	}
}

// TestStateIsRestored checks that the clock and random numbers are restored.
func TestStateIsRestored(t *testing.T) {
	clock, random := newClock(time.Unix(1000, 0)), newRandom("a")
	clock.pass(time.Minute)
	io.ReadFull(random, make([]byte, 13))
	state := saveState(clock, random)
	there, drawn := newClock(time.Unix(1000, 0)), newRandom("a")
	if err := restoreState(there, drawn, state); err != nil {
		t.Fatal(err)
	}
	here, next := make([]byte, 64), make([]byte, 64)
	io.ReadFull(random, here)
	io.ReadFull(drawn, next)
	if there.nanotime() != clock.nanotime() || !bytes.Equal(here, next) {
		t.Error("the restored clock or random numbers differ")
	}
	if restoreState(there, drawn, state[:7]) == nil || restoreState(there, drawn, state[:len(state)-1]) == nil {
		t.Error("a truncated state was accepted")
	}
}

// empty is a module that does nothing.
const empty = "\x00asm\x01\x00\x00\x00"

// runIn runs a runner in folder with the given standard input.
func runIn(t *testing.T, folder, input string, c Config) int {
	t.Helper()
	t.Chdir(folder)
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func(before *os.File) { os.Stdin = before }(os.Stdin)
	os.Stdin = f
	return run(t.Context(), Wazero{}, c, nil)
}

// TestInputFilesAreNotUsedAsCompiledCode places input files where compiled code is expected. They could be
// native code, and must not be executed.
func TestInputFilesAreNotUsedAsCompiledCode(t *testing.T) {
	folder := t.TempDir()
	if status := runIn(t, folder, empty, Config{Compile: true}); status != 0 {
		t.Fatalf("compiler: exit status %d", status)
	}
	var code []string
	filepath.WalkDir(filepath.Join(folder, compiled), func(path string, d fs.DirEntry, _ error) error {
		if d.Type().IsRegular() {
			code = append(code, path)
		}
		return nil
	})
	if len(code) == 0 {
		t.Fatal("nothing was compiled")
	}
	for mode, c := range map[string]Config{"compiler": {Compile: true}, "runner": {}} {
		for _, path := range code {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("an input"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		input := empty
		if !c.Compile { // without compiled code, as from another processor
			input = fmt.Sprintf("%-*s\n%s", maxHeader-1, `[{"Size":8}]`, empty)
		}
		if status := runIn(t, folder, input, c); status != 0 {
			t.Errorf("%s read the input file: exit status %d", mode, status)
		}
	}
}

// FuzzUnpack checks that unpacking any file of a store writes only below its folder.
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
