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

// Materialize writes the files of m below dir from the store: a job's program and inputs into its scratch
// folder, or collected files into the user's folder. dir must exist; Materialize creates subfolders as
// needed. It replaces each existing file atomically. A folder in the place of a file is an error.
//
// Every byte is hashed while it is copied (promise T1). No file with wrong bytes appears in dir, and
// corrupted content is removed from the store. The error then wraps ErrMissing, as it does for content
// that the store lacks: fetch it again and retry. All writes go through an os.Root, so symbolic links in
// dir cannot lead out of it (T3). Files get the permission bits of their entry, subject to the umask, and
// are always readable and writable by the owner.
func (s *Store) Materialize(ctx context.Context, m Manifest, dir string) error {
	return s.layOut(ctx, m, dir, replaceFile)
}

// MaterializeNew is like Materialize, but replaces nothing. It keeps an existing file with the same
// content. Another file, a link or a folder in its place is an error that wraps fs.ErrExist.
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

// makeFolders creates each folder of m once. In walk order the files of a folder are mostly adjacent.
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

// place writes one file under a temporary name first, so that e.Path always holds either the old or the
// new file.
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

// replaceFile moves temp to e.Path and replaces an existing file.
func replaceFile(_ context.Context, root *os.Root, temp string, e Entry) error {
	err := root.Rename(temp, e.Path)
	if err != nil {
		if info, serr := root.Lstat(e.Path); serr == nil && info.IsDir() {
			return fmt.Errorf("a directory exists at its path: %w", syscall.EISDIR)
		}
	}
	return err
}

// addFile moves temp to e.Path if no file exists there. It keeps a file with the same content, which an
// interrupted and resumed collection has written.
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
	return fmt.Errorf("existing file is not replaced: %w", fs.ErrExist)
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

// copyVerified copies content out of the store and verifies the copied bytes.
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

// Manifest reads a manifest from the store and verifies it as Materialize does.
func (s *Store) Manifest(ctx context.Context, d Digest) (Manifest, error) {
	f, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(contextReader{ctx, io.LimitReader(f, maxManifestBytes+1)})
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", d, err)
	}
	if len(b) <= maxManifestBytes && DigestOf(b) != d {
		return nil, errors.Join(fmt.Errorf("manifest %s was corrupted in the store and has been dropped: %w", d, ErrMissing), s.drop(d))
	}
	return UnmarshalManifest(b)
}
