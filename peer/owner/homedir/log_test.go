package homedir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogIsBounded checks that older lines are in the old log, and that other writers' lines are kept.
func TestLogIsBounded(t *testing.T) {
	const most, lines = 4096, 1000
	w, f := openBound(t, most)
	for n := range lines {
		fmt.Fprintf(w, "line %d\n", n)
	}
	fmt.Fprintln(f, "panic: of the runtime")
	fmt.Fprintf(w, "line %d\n", lines)

	kept := read(t, w.old) + read(t, f.Name())
	if n := len(kept); n > 2*most+100 || n < most {
		t.Errorf("%d bytes are kept", n)
	}
	all := strings.Split(kept, "\n")
	first := 0
	fmt.Sscanf(all[0], "line %d", &first)
	var want bytes.Buffer
	for n := first; n < lines; n++ {
		fmt.Fprintf(&want, "line %d\n", n)
	}
	fmt.Fprintf(&want, "panic: of the runtime\nline %d\n", lines)
	if kept != want.String() {
		t.Errorf("from line %d on, the log is\n%s", first, kept)
	}
}

// TestLogContinuesIfRotationFails checks that the log continues without an old log, and contains a
// warning.
func TestLogContinuesIfRotationFails(t *testing.T) {
	w, f := openBound(t, 100)
	if err := os.MkdirAll(filepath.Join(w.old, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, strings.Repeat("z", 90))
	fmt.Fprintln(w, strings.Repeat("y", 20))
	if got := read(t, f.Name()); !strings.Contains(got, "cannot be rotated") || !strings.HasSuffix(got, strings.Repeat("y", 20)+"\n") || strings.Contains(got, "zz") {
		t.Errorf("the log contains %s", got)
	}
}

// TestOnlyTheHomesLogIsTruncated checks that no other file of the owner is truncated.
func TestOnlyTheHomesLogIsTruncated(t *testing.T) {
	dir := t.TempDir()
	other, err := os.Create(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if w := BoundLog(dir, other); w != other {
		t.Errorf("got %T where there is no log", w)
	}
	log, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if w := BoundLog(dir, other); w != other {
		t.Errorf("got %T for another file", w)
	}
	var b bytes.Buffer
	if w := BoundLog(dir, &b); w != &b {
		t.Errorf("got %T for a writer that is not a file", w)
	}
}

// openBound returns a log with the given bound, and the same file as another writer opens it.
func openBound(t *testing.T, most int64) (*boundLog, *os.File) {
	t.Helper()
	dir := t.TempDir()
	f, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, ok := BoundLog(dir, f).(*boundLog)
	if !ok {
		t.Fatal("the log has no bound")
	}
	t.Cleanup(func() { w.file.Close() })
	w.most = most
	return w, f
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
