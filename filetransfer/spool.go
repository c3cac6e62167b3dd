package filetransfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
)

// A spool is content whose digest is known only when all of it has arrived, such as content from the web. A
// spool is stored in partial/<key>, where the key identifies its source. It is counted, resumed and evicted
// like other partial contents.
type spool struct {
	store  *Store
	claim  *claim
	key    Digest
	f      *os.File
	hash   hash.Hash // hash of the bytes in the file
	offset int64     // number of bytes in the file
	aside  int64     // bytes counted against the limit
}

// openSpool opens the spool of a source with the bytes that have arrived. Until it is closed, other
// callers with the same key wait.
func openSpool(ctx context.Context, s *Store, key Digest) (*spool, error) {
	sp := &spool{store: s, key: key, hash: sha256.New()}
	for sp.claim == nil {
		if busy := sp.take(); busy != nil {
			select {
			case <-busy:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	var err error
	if sp.f, err = os.OpenFile(s.dir.partial(key), os.O_RDWR|os.O_CREATE, fileMode); err == nil {
		sp.offset, err = io.Copy(sp.hash, contextReader{ctx, io.LimitReader(sp.f, sp.aside)})
	}
	if err == nil {
		err = sp.f.Truncate(sp.offset)
	}
	if err != nil {
		sp.close()
		return nil, fmt.Errorf("open partial content: %w", err)
	}
	return sp, nil
}

// take claims the spool, or returns a channel that is closed when the spool may be free.
func (sp *spool) take() (busy <-chan struct{}) {
	s := sp.store
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.items[sp.key]
	if it == nil {
		it = &item{}
		s.add(sp.key, it)
	}
	if it.claim != nil {
		return it.claim.done
	}
	sp.claim = &claim{store: s, wants: []Want{{Digest: sp.key}}, done: make(chan struct{})}
	it.claim, sp.aside = sp.claim, it.bytes
	return nil
}

// expect reserves space for size bytes in total. The error wraps errFull.
func (sp *spool) expect(size int64) error {
	if size <= sp.aside {
		return nil
	}
	s := sp.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(size - sp.aside); err != nil {
		return err
	}
	s.items[sp.key].bytes = size
	s.bytes += size - sp.aside
	sp.aside = size
	return nil
}

// Write appends b.
func (sp *spool) Write(b []byte) (int, error) {
	if err := sp.expect(sp.offset + int64(len(b))); err != nil {
		return 0, err
	}
	n, err := sp.f.Write(b)
	sp.offset += int64(n)
	sp.hash.Write(b[:n])
	return n, err
}

// restart discards the bytes that have arrived.
func (sp *spool) restart() error {
	sp.offset = 0
	sp.hash.Reset()
	if _, err := sp.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return sp.f.Truncate(0)
}

// commit turns the spool into complete content of the store, pinned for the job.
func (sp *spool) commit(ctx context.Context, job string) (Digest, error) {
	d := Digest(sp.hash.Sum(nil))
	for {
		busy, err := sp.move(job, d)
		if err != nil {
			return d, fmt.Errorf("keep content %s: %w", d, err)
		}
		if busy == nil {
			return d, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return d, ctx.Err()
		}
	}
}

// move renames the spool to content d. If another caller has claimed d, it returns a channel that is
// closed when that claim ends.
func (sp *spool) move(job string, d Digest) (busy <-chan struct{}, err error) {
	s := sp.store
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.items[d]
	switch {
	case old == nil:
	case old.claim != nil:
		return old.claim.done, nil
	case old.complete && len(s.pins[d]) > 0: // it may be served, so the file must not be replaced
		if err := s.remove(sp.key); err != nil {
			return nil, err
		}
		s.pin(job, d)
		return nil, nil
	case !old.complete:
		if err := s.remove(d); err != nil {
			return nil, err
		}
		old = nil
	}
	if err := moveInto(s.dir.partial(sp.key), s.Path(d)); err != nil {
		return nil, err
	}
	s.forget(sp.key)
	if old == nil {
		s.add(d, &item{bytes: sp.offset, complete: true})
	}
	s.pin(job, d)
	return nil, nil
}

// close releases the spool. Bytes that were not committed remain, to be resumed.
func (sp *spool) close() {
	if sp.f != nil {
		_ = sp.f.Close() // the digest reveals a write error
	}
	if sp.offset == 0 {
		_ = os.Remove(sp.store.dir.partial(sp.key)) // nothing to resume
	}
	sp.claim.release()
}
