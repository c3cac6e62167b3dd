package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// readBack verifies the pieces in the partial file of a claimed content and returns the correct ones. It
// relies only on that file, so correct pieces survive a kill or a power failure, in whatever order they were
// written.
func (c *claim) readBack(ctx context.Context, w Want) (there bitset, err error) {
	n := pieces(w.Size)
	there = newBitset(n)
	f, err := os.Open(c.store.dir.partial(w.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return there, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, min(pieceSize, w.Size))
	for i := range n {
		b := buf[:pieceBytes(w.Size, i)]
		if _, err := io.ReadFull(contextReader{ctx, f}, b); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return there, nil
		} else if err != nil {
			return nil, fmt.Errorf("read back partial content %s: %w", w.Digest, err)
		}
		if w.verify(i, b) {
			there.add(i)
		}
	}
	return there, nil
}

// write writes a verified piece to its place in the partial file.
func (c *claim) write(w Want, piece int, b []byte) error {
	f, err := os.OpenFile(c.store.dir.partial(w.Digest), os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	if pieces(w.Size) == 1 { // the file may hold other bytes
		err = f.Truncate(int64(len(b)))
	}
	if err == nil {
		_, err = f.WriteAt(b, int64(piece)*pieceSize)
	}
	return errors.Join(err, f.Close())
}

// complete turns a content whose pieces have all been written or read back into complete content of the
// store.
func (c *claim) complete(w Want) error {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := moveInto(s.dir.partial(w.Digest), s.Path(w.Digest)); err != nil {
		return err
	}
	it := s.items[w.Digest]
	it.complete, it.claim = true, nil
	s.use(it)
	it.stamped = time.Now()
	return nil
}

// moveInto renames a file within the store and creates the target's folder if necessary.
func moveInto(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(to), dirMode); err == nil {
			err = os.Rename(from, to)
		}
	}
	return err
}
