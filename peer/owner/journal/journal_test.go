package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var since = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func entry(job int) Entry {
	return Entry{
		Job: fmt.Sprintf("%032x", job), Submitter: "12D3", Class: "everyone", Kind: "wasm", Program: "ep", Digest: "0a",
		Processes: 2, Since: since.Add(time.Duration(job) * time.Second),
	}
}

func ended(e Entry) Entry {
	e.Until, e.Ended, e.CPU, e.Memory = e.Since.Add(time.Minute), "stopped", 30*time.Second, 1<<20
	return e
}

func open(t *testing.T, path string, limit int64) *Journal {
	t.Helper()
	j, err := Open(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t *testing.T, j *Journal, e Entry) {
	t.Helper()
	if err := j.Add(e); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []Entry {
	t.Helper()
	entries, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestO3JournalIsPersistent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if got := read(t, path); got != nil {
		t.Fatalf("missing journal: read %v", got)
	}
	first := open(t, path, 1<<20)
	add(t, first, entry(1))
	add(t, first, entry(2))
	add(t, first, ended(entry(1)))
	// The peer is killed in the middle of a line, and restarted.
	if err := os.WriteFile(path, append(must(os.ReadFile(path)), `{"job":"3`...), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, path, 1<<20), entry(4))
	if got, want := read(t, path), []Entry{ended(entry(1)), entry(2), entry(4)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the journal has mode %v, %v; want 0600", info.Mode(), err)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestO4JournalStaysBelowItsLimit(t *testing.T) {
	const limit = 4 << 10
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path, limit)
	for i := range 200 {
		add(t, j, entry(i))
		if info, err := os.Stat(path); err != nil || info.Size() > limit {
			t.Fatalf("after %d entries: %v bytes, %v", i+1, info.Size(), err)
		}
	}
	got := read(t, path)
	if len(got) < 5 || !reflect.DeepEqual(got[len(got)-1], entry(199)) {
		t.Fatalf("%d entries are left", len(got))
	}
	for i, e := range got {
		if want := entry(200 - len(got) + i); !reflect.DeepEqual(e, want) {
			t.Fatalf("entry %d is %+v, want %+v", i, e, want)
		}
	}
}

// FuzzRead uses arbitrary data instead of a journal, as after a disk failure.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"job":"1","since":"2026-03-01T12:00:00Z"}` + "\n" + `{"job":"1","since":"2026-03-01T12:00:00Z","cpu":5}` + "\n{"))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := Read(path)
		if err != nil {
			return // a line is too long
		}
		j, err := Open(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if err := j.Add(entry(7)); err != nil {
			t.Fatal(err)
		}
		after, err := Read(path)
		if err != nil || len(after) < len(before) || !reflect.DeepEqual(after[len(after)-1], entry(7)) && len(after) > len(before) {
			t.Errorf("%d entries before, %d after one more: %v", len(before), len(after), err)
		}
	})
}
