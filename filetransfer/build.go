package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// hashers is how many files are hashed or written at the same time: enough to overlap disk and processor,
// few enough to leave a small machine usable.
const hashers = 2

// A Source is a local file that is to appear under Path on another machine.
type Source struct {
	Path string // staged path, as in Entry
	From string // local path
	// Within is a directory. From is relative to Within and cannot lead out of it, regardless of symbolic
	// links. Within is set for files that an untrusted program may replace at any time. If Within is empty,
	// From is used directly and links are followed.
	Within string `json:",omitempty"`
}

// Build hashes the files and returns their manifest. The error names the first file that is not a
// readable regular file, or the first staged path that Manifest.Validate rejects.
//
// A file may change between Build and its transfer. The receiver then rejects it by its digest (promise
// T1).
func Build(ctx context.Context, files []Source) (Manifest, error) {
	if len(files) > MaxEntries {
		return nil, fmt.Errorf("build manifest: %d files, at most %d are allowed", len(files), MaxEntries)
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

// Locate returns the local file for the content of each entry of m, as Service.Serve expects it. The
// files are those that m was built from.
func Locate(m Manifest, files []Source) map[Digest]Source {
	from := make(map[string]Source, len(files))
	for _, f := range files {
		from[f.Path] = f
	}
	at := make(map[Digest]Source, len(m))
	for _, e := range m {
		if s, ok := from[e.Path]; ok {
			at[e.Digest] = s
		}
	}
	return at
}

func entryOf(ctx context.Context, s Source) (Entry, error) {
	f, info, err := s.open()
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

// open opens the file for reading if it is a regular file. It does not block if a named pipe has replaced
// the file. Its errors contain the path.
func (s Source) open() (*os.File, fs.FileInfo, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := s.openAs(flags)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: s.From, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func (s Source) openAs(flags int) (*os.File, error) {
	if s.Within == "" {
		return os.OpenFile(s.From, flags, 0)
	}
	root, err := os.OpenRoot(s.Within)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(s.From, flags, 0)
}

var errNotRegular = errors.New("not a regular file")
