package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
)

// hashers is how many files are hashed or laid out at once: enough to overlap
// the disk with the processor, few enough to leave a small machine usable.
const hashers = 2

// A Source is a file of this machine that is to appear under Path elsewhere.
type Source struct {
	Path string // staged path, as in Entry
	From string // local path
}

// Build hashes the files and returns their manifest. The error names the first
// file that is not a readable regular file (symbolic links are followed), or
// the first staged path that Manifest.Validate refuses.
//
// A file may still change between Build and its transfer. The receiver then
// refuses it by its digest (promise T1).
func Build(ctx context.Context, files []Source) (Manifest, error) {
	if len(files) > MaxEntries {
		return nil, fmt.Errorf("build manifest: %d files, at most %d are taken", len(files), MaxEntries)
	}
	m := make(Manifest, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(hashers)
	for i, f := range files {
		g.Go(func() (err error) {
			m[i], err = entryOf(ctx, f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("build manifest: %w", err)
	}
	slices.SortFunc(m, func(a, b Entry) int { return comparePaths(a.Path, b.Path) })
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// Locate returns where the content of each entry of m is on this machine, as
// Service.Serve takes it. The files are those that m was built from.
func Locate(m Manifest, files []Source) map[Digest]string {
	from := make(map[string]string, len(files))
	for _, f := range files {
		from[f.Path] = f.From
	}
	paths := make(map[Digest]string, len(m))
	for _, e := range m {
		if p, ok := from[e.Path]; ok {
			paths[e.Digest] = p
		}
	}
	return paths
}

func entryOf(ctx context.Context, s Source) (Entry, error) {
	f, info, err := openRegular(s.From)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	w, err := readWant(ctx, f)
	if err != nil {
		return Entry{}, fmt.Errorf("read %q: %w", s.From, err)
	}
	return Entry{Path: s.Path, Size: w.Size, Mode: info.Mode().Perm(), Digest: w.Digest, Pieces: w.Pieces}, nil
}

// openRegular opens a regular file for reading. It looks before it opens,
// because opening a named pipe would wait for its writer. Its errors carry the
// path.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

var errNotRegular = errors.New("not a regular file")
