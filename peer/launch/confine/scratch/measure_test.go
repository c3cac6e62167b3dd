package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// ruler measures a folder completely.
var ruler = Ruler{Least: leastEntry}

func TestMeasure(t *testing.T) {
	top := t.TempDir()
	folder, outside := filepath.Join(top, "scratch"), filepath.Join(top, "outside")
	if n, err := Measure(folder, ruler); n != 0 || err != nil {
		t.Errorf("of no folder: %d, %v", n, err)
	}
	locked := filepath.Join(folder, "locked")
	for _, d := range []string{locked, outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const size = 2 * largeFile
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
	n, err := Measure(folder, ruler) // adds missing permissions at once
	if err != nil || n < size+4*leastEntry || n >= 2*size {
		t.Errorf("got %d, %v; want the file counted once, and the other entries", n, err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("outside: %v, %v", info.Mode(), err)
	}
}

// BenchmarkMeasure measures a folder with 25,000 empty files.
func BenchmarkMeasure(b *testing.B) {
	folder := b.TempDir()
	for i := range 25000 {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if n, err := Measure(folder, ruler); err != nil || n < 25000*leastEntry {
			b.Fatal(n, err)
		}
	}
}

// TestMovedFileCountsOnce checks that a file that is moved during the measurement, and found in two
// folders, counts once.
func TestMovedFileCountsOnce(t *testing.T) {
	const size = 2 * largeFile
	folder := t.TempDir()
	other := map[string]string{"a": "z", "z": "a"}
	for name := range other {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m := measurement{Ruler: ruler, Found: Found{large: make(map[[2]uint64]int64)}}
	first, found := "", 0
	err := walk.Walk(folder, func(e *walk.Entry) error {
		at := func(in string) string { return filepath.Join(folder, in, "file") }
		err := m.add(e)
		switch {
		case other[e.Name] != "" && first == "":
			first = e.Name
			err = errors.Join(err, os.WriteFile(at(first), make([]byte, size), 0o600))
		case e.Name == "file":
			if found++; found == 1 {
				err = errors.Join(err, os.Rename(at(first), at(other[first])))
			}
		}
		return err
	})
	if err != nil || found != 2 || m.Bytes < size || m.Bytes >= 2*size {
		t.Errorf("got %d, %v, found %d times; want the file once", m.Bytes, err, found)
	}
}

// TestFoundInBoth checks that only what two measurements have both found is certain: of large files those that
// still exist, at their smaller size, and of small ones the smaller sum.
func TestFoundInBoth(t *testing.T) {
	const size, small = 2 * largeFile, 4 << 10
	folder := t.TempDir()
	write := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	survey := func() Found {
		t.Helper()
		found, err := Survey(folder, ruler)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	about := func(what string, got, want int64) {
		t.Helper()
		if got < want || got > want+4*leastEntry {
			t.Errorf("%s: got %d, want %d", what, got, want)
		}
	}
	for name, bytes := range map[string]int{"step-1": 4 * size, "kept": size, "small-1": small, "small-2": small} {
		write(name, bytes)
	}
	step, err := os.Open(filepath.Join(folder, "step-1")) // so that no other file gets its identity
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	first := survey()
	about("the same twice", survey().InBoth(first), 5*size+2*small)
	err = errors.Join(os.Remove(step.Name()), os.Remove(filepath.Join(folder, "small-1")),
		os.Rename(filepath.Join(folder, "kept"), filepath.Join(folder, "moved")))
	if err != nil {
		t.Fatal(err)
	}
	write("step-2", 4*size)
	second := survey()
	about("another file", second.InBoth(first), size+small)
	about("in reverse", first.InBoth(second), size+small)
	about("nothing before", second.InBoth(Found{}), 0)
}

// TestEachNameCounts checks that each name counts, even of one file, and that the measurement stops once
// the limit is exceeded.
func TestEachNameCounts(t *testing.T) {
	const names, least = 5000, 3 * leastEntry
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range names - 1 {
		if err := os.Link(file, filepath.Join(folder, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Measure(folder, Ruler{Least: least}); err != nil || n < names*least {
		t.Errorf("got %d, %v; want %d at least", n, err, names*least)
	}
	most := int64(names / 2 * least)
	if n, err := Measure(folder, Ruler{Least: least, Most: most}); err != nil || n <= most || n > most+least {
		t.Errorf("got %d, %v; want little more than %d", n, err, most)
	}
	enough, asked := errors.New("enough"), 0
	_, err := Measure(folder, Ruler{Least: least, Pause: func() error {
		if asked++; asked == 2 {
			return enough
		}
		return nil
	}})
	if !errors.Is(err, enough) || asked != 2 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
}

func TestPerFile(t *testing.T) {
	for name, c := range map[string]struct{ bytes, files, want int64 }{
		"ext4 with default options": {100 << 30, 100 << 30 / (16 << 10), 16 << 10},
		"more files than bytes":     {1 << 30, 1 << 40, leastEntry},
		"without end":               {100 << 30, 0, leastEntry},
		"next to no files left":     {100 << 30, 10, mostEntry},
		"full":                      {0, 1000, leastEntry},
	} {
		if got := perFile(c.bytes, c.files); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	if n := LeastEntry(t.TempDir()); n < leastEntry || n > mostEntry {
		t.Errorf("here: %d", n)
	}
}
