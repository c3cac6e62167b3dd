package filetransfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestStorePutAndOpen(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1000)
	b := content(1, 100)
	d := put(t, s, "job", b)
	if again := put(t, s, "job", b); again != d {
		t.Fatalf("the same bytes again: %v, want %v", again, d)
	}
	if !s.Has(d) || s.Bytes() != 100 {
		t.Fatalf("the content is stored: %v, with %d bytes in the store", s.Has(d), s.Bytes())
	}
	if again := openStore(t, dir, 1000); !again.Has(d) || again.Bytes() != 100 {
		t.Error("a reopened store does not have the content")
	}
	if _, err := s.Open(Digest{}); !errors.Is(err, ErrMissing) {
		t.Errorf("missing content: %v", err)
	}
}

func TestT4StoreNeverExceedsItsLimit(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	for i := range 50 {
		job := "job"
		put(t, s, job, content(byte(i), 100+i))
		wantBytes(t, s)
		s.Unpin(job)
	}
}

func TestT4PinnedContentIsNeverEvicted(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	a := put(t, s, "running", content(1, 400))
	b := put(t, s, "over", content(2, 400))
	s.Pin("second", []Digest{a})
	if _, err := s.Put(t.Context(), "big", content(3, 300)); !errors.Is(err, errFull) {
		t.Fatalf("store full of pinned contents: %v", err)
	}
	s.Unpin("over")
	put(t, s, "big", content(3, 300))
	if !s.Has(a) || s.Has(b) {
		t.Errorf("pinned content is stored: %v, unpinned content: %v", s.Has(a), s.Has(b))
	}
	s.Unpin("running") // the second job still uses it
	if _, err := s.Put(t.Context(), "more", content(4, 400)); !errors.Is(err, errFull) {
		t.Errorf("content of the second job was evicted: %v", err)
	}
	wantBytes(t, s)
}

// Recently used content is evicted last, even if another process used it.
func TestT4LeastRecentlyUsedGoesFirst(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1000)
	a, b := put(t, s, "j", content(1, 400)), put(t, s, "j", content(2, 400))
	past := time.Now().Add(-2 * stampEvery)
	for _, d := range []Digest{a, b} {
		if err := os.Chtimes(s.Path(d), past, past); err != nil {
			t.Fatal(err)
		}
	}
	s = openStore(t, dir, 1000)
	s.Pin("k", []Digest{a})
	s = openStore(t, dir, 1000)
	put(t, s, "l", content(3, 400))
	if !s.Has(a) || s.Has(b) {
		t.Errorf("used content is stored: %v, unused content: %v", s.Has(a), s.Has(b))
	}
}

// Served content must keep its modification time; otherwise it would be refused as changed.
func TestContentInUseKeepsItsModificationTime(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	d := put(t, s, "j", content(1, 400))
	past := time.Now().Add(-2 * stampEvery).Truncate(time.Second)
	if err := os.Chtimes(s.Path(d), past, past); err != nil {
		t.Fatal(err)
	}
	s.items[d].stamped = past
	for _, job := range []string{"j", "k"} {
		s.Pin(job, []Digest{d})
	}
	s.Unpin("j")
	if info, err := os.Stat(s.Path(d)); err != nil || !info.ModTime().Equal(past) {
		t.Errorf("while the content is pinned: got %v, %v; want %v", info.ModTime(), err, past)
	}
	s.Unpin("k")
	if info, err := os.Stat(s.Path(d)); err != nil || info.ModTime().Equal(past) {
		t.Errorf("once no job uses the content: still %v, %v", info.ModTime(), err)
	}
}

func TestOpenStoreEvictsDownToASmallerLimit(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1000)
	put(t, s, "j", content(1, 400))
	put(t, s, "j", content(2, 400))
	wantBytes(t, openStore(t, dir, 500))
	if _, err := OpenStore(dir, 0); err == nil {
		t.Error("a limit of 0 was accepted")
	}
}

// A killed process leaves partial files of any length, and perhaps one beside its complete content. No partial
// file is ever used as content.
func TestT1StoreAfterKill(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1000)
	whole, half := content(1, 100), content(2, 100)
	d := put(t, s, "j", whole)
	writeFile(t, s.dir.partial(d), whole[:30])
	writeFile(t, s.dir.partial(DigestOf(half)), half[:40])
	writeFile(t, filepath.Join(dir, "ab", d.String()), whole) // in a wrong folder
	writeFile(t, filepath.Join(dir, "README"), whole)
	s = openStore(t, dir, 1000)
	if !s.Has(d) || s.Has(DigestOf(half)) || s.Bytes() != 140 {
		t.Fatalf("the whole content is stored: %v, the partial one: %v, with %d bytes in the store", s.Has(d), s.Has(DigestOf(half)), s.Bytes())
	}
	c, _, err := s.claim([]Want{{Digest: DigestOf(half), Size: 100}})
	if err != nil || !c.begun[DigestOf(half)] {
		t.Fatalf("claim returned %+v, %v; want a partial content", c, err)
	}
	c.release()
	if s.Bytes() != 140 {
		t.Errorf("%d bytes after the claim, want 140", s.Bytes())
	}
}

func TestTooLongPartialIsNotResumed(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	b := content(1, 100)
	writeFile(t, s.dir.partial(DigestOf(b)), make([]byte, 150))
	s = openStore(t, string(s.dir), 1000)
	put(t, s, "j", b)
	wantFile(t, s.Path(DigestOf(b)), b)
	wantBytes(t, s)
}

// Space is reserved when content is claimed, not when it arrives.
func TestT4ClaimsCountInFull(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	old := put(t, s, "old", content(1, 500))
	s.Unpin("old")
	c, _, err := s.claim([]Want{{Digest: Digest{1}, Size: 400}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.claim([]Want{{Digest: Digest{2}, Size: 700}}); !errors.Is(err, errFull) {
		t.Fatalf("700 bytes in addition to 400 claimed of 1000: %v", err)
	}
	if !s.Has(old) {
		t.Error("content was evicted although the new content did not fit")
	}
	c.release()
	if s.Bytes() != 500 {
		t.Errorf("%d bytes, want 500", s.Bytes())
	}
}

func TestContentIsFilledByOneCallerAtATime(t *testing.T) {
	s := openStore(t, t.TempDir(), 1<<20)
	b := content(1, 1000)
	var fills atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := s.fillAll(t.Context(), []Want{{Digest: DigestOf(b), Size: 1000}}, func(c *claim) error {
				if fills.Add(1) == 1 {
					return errors.New("the first one fails; another takes over")
				}
				if err := c.write(c.wants[0], 0, b); err != nil {
					return err
				}
				return c.complete(c.wants[0])
			})
			if err != nil && fills.Load() > 2 {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := fills.Load(); n != 2 || !s.Has(DigestOf(b)) {
		t.Errorf("the content was filled %d times, and is stored: %v", n, s.Has(DigestOf(b)))
	}
}

func TestWaitingForAnotherFillEndsWithTheContext(t *testing.T) {
	s := openStore(t, t.TempDir(), 1000)
	w := []Want{{Digest: Digest{1}, Size: 10}}
	c, _, err := s.claim(w)
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.fillAll(ctx, w, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("fillAll with a cancelled context returned %v", err)
	}
}
