package filetransfer

import (
	"context"
	"fmt"
	"os"
)

// A claim is the right of one caller to fill some missing contents: while it
// lasts, whoever else wants one of them waits for done instead of fetching it
// a second time. Its space is set aside below the limit from the beginning.
type claim struct {
	store *Store
	wants []Want
	begun map[Digest]bool // those of which something may lie in the partial file
	done  chan struct{}   // closed by release
}

// claim takes over those of the wanted contents that are neither complete nor
// claimed. busy is nil, or closed once some of the others are worth another
// try. With nothing to claim and nothing busy, all is in the store.
func (s *Store) claim(wants []Want) (c *claim, busy <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = &claim{store: s, begun: map[Digest]bool{}, done: make(chan struct{})}
	var need int64
	for _, w := range wants {
		it := s.items[w.Digest]
		if it != nil && it.claim == nil && !it.complete && it.bytes > w.Size { // nothing to resume
			if err := s.remove(w.Digest); err != nil {
				c.drop()
				return nil, nil, err
			}
			it = nil
		}
		switch {
		case it == nil:
			it = &item{}
			s.add(w.Digest, it)
		case it.complete || it.claim == c:
			continue
		case it.claim != nil:
			busy = it.claim.done
			continue
		}
		it.claim = c
		c.wants = append(c.wants, w)
		c.begun[w.Digest] = it.bytes > 0
		need += w.Size - it.bytes
	}
	if err := s.makeRoom(need); err != nil {
		c.drop()
		return nil, nil, err
	}
	c.setAside(need)
	return c, busy, nil
}

// setAside counts the wanted sizes in full. Called with the store's mu held.
func (c *claim) setAside(need int64) {
	for _, w := range c.wants {
		c.store.items[w.Digest].bytes = w.Size
	}
	c.store.bytes += need
}

// drop undoes a claim that found no room. Called with the store's mu held.
func (c *claim) drop() {
	for _, w := range c.wants {
		if it := c.store.items[w.Digest]; it.bytes == 0 {
			c.store.forget(w.Digest)
		} else {
			it.claim = nil
		}
	}
}

// release ends the claim. Partial files that are left stay for the next one to
// resume; the space that they do not use is given back.
func (c *claim) release() {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range c.wants {
		it := s.items[w.Digest]
		if it == nil || it.claim != c {
			continue
		}
		it.claim = nil
		s.forget(w.Digest)
		if info, err := os.Stat(s.partialPath(w.Digest)); err == nil {
			s.add(w.Digest, &item{bytes: info.Size()})
		}
	}
	close(c.done)
}

// Put stores b, pinned for the job, and returns its digest: for a manifest,
// which is served as content. The error wraps ErrFull when it does not fit.
func (s *Store) Put(ctx context.Context, job string, b []byte) (Digest, error) {
	w := Want{Digest: DigestOf(b), Size: int64(len(b))}
	s.Pin(job, []Digest{w.Digest})
	err := s.obtain(ctx, []Want{w}, func(c *claim) error {
		for i := range pieces(w.Size) {
			begin := i * PieceBytes
			if err := c.write(w, i, b[begin:begin+pieceBytes(w.Size, i)]); err != nil {
				return err
			}
		}
		return c.complete(w)
	})
	if err != nil {
		return Digest{}, fmt.Errorf("store content %s: %w", w.Digest, err)
	}
	return w.Digest, nil
}

// obtain has all wants complete when it returns nil. It calls fill with each
// claim that it gets, and waits for what others are filling.
func (s *Store) obtain(ctx context.Context, wants []Want, fill func(*claim) error) error {
	for {
		c, busy, err := s.claim(wants)
		if err != nil {
			return err
		}
		if len(c.wants) > 0 {
			err = fill(c)
		}
		c.release()
		if err != nil || busy == nil {
			return err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
