package filetransfer

import (
	"context"
	"fmt"
	"os"
)

// A claim is the exclusive right of one caller to fetch some missing contents. Other callers that want one
// of these contents wait for done instead of fetching it again. The store reserves the space for the contents
// in advance.
type claim struct {
	store *Store
	wants []Want
	begun map[Digest]bool // contents that may have data in their partial files
	done  chan struct{}   // closed by release
}

// claim claims those of the wanted contents that are neither complete nor claimed. If others hold claims
// on some of them, busy is a channel that is closed when retrying is worthwhile; otherwise it is nil. If
// c claims nothing and busy is nil, all contents are in the store.
func (s *Store) claim(wants []Want) (c *claim, busy <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = &claim{store: s, begun: map[Digest]bool{}, done: make(chan struct{})}
	var need int64
	for _, w := range wants {
		it := s.items[w.Digest]
		if it != nil && it.claim == nil && !it.complete && it.bytes > w.Size { // too long to be resumed
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
	for _, w := range c.wants { // the full size counts from now on
		s.items[w.Digest].bytes = w.Size
	}
	s.bytes += need
	return c, busy, nil
}

// drop undoes a claim for which there was no room. The caller holds the store's mu.
func (c *claim) drop() {
	for _, w := range c.wants {
		if it := c.store.items[w.Digest]; it.bytes == 0 {
			c.store.forget(w.Digest)
		} else {
			it.claim = nil
		}
	}
}

// release ends the claim. Partial files remain for the next claim to resume; unused reserved space is
// freed.
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
		if info, err := os.Stat(s.dir.partial(w.Digest)); err == nil {
			s.add(w.Digest, &item{bytes: info.Size()})
		}
	}
	close(c.done)
}

// Put stores b, pinned for the job, and returns its digest. It fails if b does not fit into the store.
// Manifests, which are served as contents, are stored by Put.
func (s *Store) Put(ctx context.Context, job string, b []byte) (Digest, error) {
	w := Want{Digest: DigestOf(b), Size: int64(len(b))}
	s.Pin(job, []Digest{w.Digest})
	err := s.fillAll(ctx, []Want{w}, func(c *claim) error {
		for i := range pieces(w.Size) {
			begin := i * pieceSize
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

// fillAll makes all wanted contents complete. It calls fill with each claim that it gets, and waits for
// the claims of other callers.
func (s *Store) fillAll(ctx context.Context, wants []Want, fill func(*claim) error) error {
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
