package filetransfer

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestContentsAreSortedByLastUse(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1<<20)
	a, b := put(t, s, "one", content(1, 100)), put(t, s, "one", content(2, 200))
	s.Pin("two", []Digest{a})
	web := newSite(t, content(3, 300))
	d, err := web.download(t, s, "")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.claim([]Want{{Digest: Digest{1}, Size: 400}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Contents()
	c.release()
	want := []Content{
		{Digest: Digest{1}.String(), Bytes: 400, Arriving: true, Jobs: []string{}},
		{Digest: d.String(), Bytes: 300, Complete: true, Jobs: []string{job}, URL: web.URL + "/data"},
		{Digest: a.String(), Bytes: 100, Complete: true, Jobs: []string{"one", "two"}},
		{Digest: b.String(), Bytes: 200, Complete: true, Jobs: []string{"one"}},
	}
	same := func(a, b Content) bool {
		return a.Digest == b.Digest && a.Bytes == b.Bytes && a.Complete == b.Complete && a.Arriving == b.Arriving &&
			slices.Equal(a.Jobs, b.Jobs) && a.URL == b.URL
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, c := range openStore(t, dir, 1<<20).Contents() {
		if time.Since(c.Used) > time.Minute || len(c.Jobs) > 0 {
			t.Errorf("after reopening the store: %+v", c)
		}
	}
}

func TestT4TrimKeepsContentInUse(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	used := put(t, s, "runs", content(1, 400))
	var over []Digest
	for i := range 3 {
		over = append(over, put(t, s, "over", content(byte(2+i), 100)))
	}
	s.Unpin("over")
	for _, step := range []struct{ to, freed, left int64 }{{1000, 0, 700}, {590, 200, 500}, {0, 100, 400}, {0, 0, 400}} {
		freed, err := s.Trim(step.to)
		if err != nil || freed != step.freed || s.Bytes() != step.left {
			t.Errorf("to %d: freed %d, left %d, %v; want %d, %d", step.to, freed, s.Bytes(), err, step.freed, step.left)
		}
		wantBytes(t, s)
	}
	if !s.Has(used) || slices.ContainsFunc(over, s.Has) {
		t.Error("content in use was evicted, or unused content was kept")
	}
}

// One folder combines a lowered limit, bytes changed on disk, and a partial file left by a kill.
func TestT4StoreAfterKillWithLowerLimit(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1000)
	old, spoilt := put(t, s, "j", content(1, 400)), put(t, s, "j", content(2, 400))
	writeFile(t, s.Path(spoilt), content(9, 400))
	writeFile(t, s.dir.partial(Digest{7}), content(3, 150))
	s = openStore(t, dir, 500)
	wantBytes(t, s)
	if s.Has(old) || !s.Has(spoilt) {
		t.Errorf("the oldest is stored: %v, the newest is stored: %v", s.Has(old), s.Has(spoilt))
	}
	m := Manifest{{Path: "f", Size: 400, Digest: spoilt}}
	if err := s.Materialize(t.Context(), m, t.TempDir()); !errors.Is(err, ErrMissing) {
		t.Errorf("spoilt content: got %v", err)
	}
	wantBytes(t, s)
}
