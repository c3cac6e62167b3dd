package filetransfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Materialize lays the files of m out below dir, from the store: a job's
// program and inputs into its scratch folder, or collected files into the
// user's. dir must exist; folders in it are made as needed. Existing files are
// replaced, each at once; a folder where a file is to go is an error.
//
// Every byte is hashed on its way (promise T1): no file with wrong bytes
// appears in dir, and content that was corrupted in the store is dropped from
// it. The error then wraps ErrMissing, as it does for content that the store
// lacks: fetch it again and repeat. All goes through an os.Root, so symbolic
// links in dir cannot lead out of it (T3). Files get the permission bits of
// their entry, as far as the umask allows, and are readable and writable for
// the owner always.
func (s *Store) Materialize(ctx context.Context, m Manifest, dir string) error {
	return s.layOut(ctx, m, dir, replaceFile)
}

// MaterializeNew is like Materialize, but replaces nothing. A file that exists with the same
// content is kept; another one, a link or a folder in its place is an error that wraps
// fs.ErrExist.
func (s *Store) MaterializeNew(ctx context.Context, m Manifest, dir string) error {
	return s.layOut(ctx, m, dir, addFile)
}

// A putFunc moves the file temp to the path of its entry.
type putFunc func(ctx context.Context, root *os.Root, temp string, e Entry) error

func (s *Store) layOut(ctx context.Context, m Manifest, dir string, put putFunc) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("lay out files in %q: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("lay out files: %w", err)
	}
	defer root.Close()
	if err := makeFolders(root, m); err != nil {
		return fmt.Errorf("lay out files in %q: %w", dir, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(hashers)
	for _, e := range m {
		g.Go(func() error { return s.place(ctx, root, e, put) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("lay out files in %q: %w", dir, err)
	}
	return nil
}

// makeFolders makes each folder of m once; in walk order the files of a folder
// mostly stand together.
func makeFolders(root *os.Root, m Manifest) error {
	made := map[string]bool{".": true}
	for _, e := range m {
		folder := path.Dir(e.Path)
		if made[folder] {
			continue
		}
		if err := root.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("%q: make its folder: %w", e.Path, err)
		}
		made[folder] = true
	}
	return nil
}

// place writes one file under a name of its own first, so that what stands at
// e.Path is at every moment the old file or the new one.
func (s *Store) place(ctx context.Context, root *os.Root, e Entry, put putFunc) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, err := s.Open(e.Digest)
	if err != nil {
		return fmt.Errorf("%q: %w", e.Path, err)
	}
	defer from.Close()
	temp := path.Join(path.Dir(e.Path), ".p2pmpi-"+rand.Text())
	if err := s.copyVerified(ctx, root, temp, from, e); err != nil {
		return errors.Join(fmt.Errorf("%q: %w", e.Path, err), discard(root, temp))
	}
	if err := put(ctx, root, temp, e); err != nil {
		return errors.Join(fmt.Errorf("%q: %w", e.Path, err), discard(root, temp))
	}
	return nil
}

// replaceFile puts temp in the place of any file.
func replaceFile(_ context.Context, root *os.Root, temp string, e Entry) error {
	err := root.Rename(temp, e.Path)
	if err != nil {
		if info, serr := root.Lstat(e.Path); serr == nil && info.IsDir() {
			return fmt.Errorf("a folder is in its place: %w", syscall.EISDIR)
		}
	}
	return err
}

// addFile puts temp where no file is. A file with the same content stays: an interrupted
// collection that is resumed has written it.
func addFile(ctx context.Context, root *os.Root, temp string, e Entry) error {
	info, err := root.Lstat(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = root.Link(temp, e.Path); err == nil {
			return discard(root, temp)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		return root.Rename(temp, e.Path) // the file system has no hard links
	case err != nil:
		return err
	case info.Mode().IsRegular() && info.Size() == e.Size && sameContent(ctx, root, e):
		return discard(root, temp)
	}
	return fmt.Errorf("it is not replaced: %w", fs.ErrExist)
}

func sameContent(ctx context.Context, root *os.Root, e Entry) bool {
	f, err := root.Open(e.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	d, _, err := digestReader(ctx, f)
	return err == nil && d == e.Digest
}

// copyVerified copies content out of the store and checks what it has copied.
func (s *Store) copyVerified(ctx context.Context, root *os.Root, name string, from io.Reader, e Entry) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.Mode|0o600)
	if err != nil {
		return err
	}
	d, n, err := digestReader(ctx, io.TeeReader(from, f))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if d != e.Digest {
		return errors.Join(fmt.Errorf("content %s was corrupted in the store and has been dropped: %w", e.Digest, ErrMissing), s.drop(e.Digest))
	}
	if n != e.Size {
		return fmt.Errorf("content %s has %d bytes, the manifest says %d", e.Digest, n, e.Size)
	}
	return nil
}

func discard(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Manifest reads a manifest out of the store, verified as Materialize does.
func (s *Store) Manifest(ctx context.Context, d Digest) (Manifest, error) {
	f, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(contextReader{ctx, io.LimitReader(f, MaxManifestBytes+1)})
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", d, err)
	}
	if len(b) <= MaxManifestBytes && DigestOf(b) != d {
		return nil, errors.Join(fmt.Errorf("manifest %s was corrupted in the store and has been dropped: %w", d, ErrMissing), s.drop(d))
	}
	return UnmarshalManifest(b)
}
