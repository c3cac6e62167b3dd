package filetransfer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestPace: every byte of a paced job waits, and those of another job do not.
func TestPace(t *testing.T) {
	submitter, peer := newPair(t)
	var paced atomic.Int64
	pace := func(_ context.Context, n int) error {
		if n < 1 || n > maxWrite {
			t.Errorf("%d bytes at once", n)
		}
		paced.Add(int64(n))
		return nil
	}
	fetch := func(seed byte) int64 {
		t.Helper()
		before := paced.Load()
		b := content(seed, 3<<20)
		w, _ := offer(t, submitter, peer, b)
		if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
			t.Fatal(err)
		}
		wantFile(t, peer.store.Path(w.Digest), b)
		return paced.Load() - before
	}
	stop := submitter.Pace(job, pace)
	if n := fetch(1); n < 3<<20 || n > 3<<20+64<<10 {
		t.Errorf("%d bytes were paced, of 3 MiB", n)
	}
	stop()
	t.Cleanup(submitter.Pace("another job", func(context.Context, int) error { return errors.New("not its turn") }))
	if n := fetch(2); n != 0 {
		t.Errorf("%d bytes were paced after the end", n)
	}
}
