package filetransfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A partial is a content that is being written.
type partial struct {
	store  *Store
	want   Want
	offset int64 // bytes in the file
	f      *os.File
	hash   hash.Hash // of those bytes
}

// open opens the partial file of a claimed content, for appending at offset.
// What lies before it is read back, because the digest is of the whole.
func (c *claim) open(ctx context.Context, w Want, offset int64) (*partial, error) {
	flags := os.O_RDWR | os.O_CREATE
	if offset == 0 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(c.store.partialPath(w.Digest), flags, fileMode)
	if err != nil {
		return nil, err
	}
	p := &partial{store: c.store, want: w, offset: offset, f: f, hash: sha256.New()}
	if offset == 0 {
		return p, nil
	}
	if err := p.readBack(ctx); err != nil {
		f.Close()
		return nil, fmt.Errorf("read back partial content %s: %w", w.Digest, err)
	}
	return p, nil
}

// readBack hashes the bytes before offset and cuts off what lies behind them.
func (p *partial) readBack(ctx context.Context) error {
	if err := p.f.Truncate(p.offset); err != nil {
		return err
	}
	n, err := io.Copy(p.hash, contextReader{ctx, p.f})
	if err == nil && n != p.offset {
		return fmt.Errorf("%d bytes where %d were", n, p.offset)
	}
	return err
}

// Write appends b. It refuses what goes beyond the wanted size, for which no
// space has been set aside.
func (p *partial) Write(b []byte) (int, error) {
	if int64(len(b)) > p.want.Size-p.offset {
		return 0, fmt.Errorf("content %s is longer than its %d bytes", p.want.Digest, p.want.Size)
	}
	n, err := p.f.Write(b)
	p.offset += int64(n)
	p.hash.Write(b[:n])
	return n, err
}

// commit closes the file and, if its bytes have the wanted digest, makes it
// complete content of the store. If not, it is deleted and ok is false (T1).
func (p *partial) commit() (ok bool, err error) {
	if err := p.f.Close(); err != nil {
		return false, err
	}
	d, s := p.want.Digest, p.store
	if p.offset != p.want.Size || Digest(p.hash.Sum(nil)) != d {
		return false, os.Remove(s.partialPath(d))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := moveInto(s.partialPath(d), s.Path(d)); err != nil {
		return false, err
	}
	it := s.items[d]
	it.complete, it.claim = true, nil
	s.use(it)
	it.stamped = time.Now()
	return true, nil
}

// close leaves the partial file to be resumed. What the file system fails to
// keep of it is found out by the digest.
func (p *partial) close() { _ = p.f.Close() }

// moveInto renames within the store, making the target's folder on first use.
func moveInto(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(to), dirMode); err == nil {
			err = os.Rename(from, to)
		}
	}
	return err
}
