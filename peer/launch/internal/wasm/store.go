package wasm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A Store keeps compiled modules by digest, the most recently used. Several goroutines
// may use it.
type Store struct{ dir, engine string }

// maxStore bounds what a Store keeps, in bytes.
const maxStore = 512 << 20

// maxEntry bounds a module with what it was compiled to, in bytes: several have room.
const maxEntry = maxStore / 4

// NewStore returns the store in a folder, which is made when it is needed, of what the engine
// of that name has compiled. Several engines may have one folder.
func NewStore(dir, engine string) *Store { return &Store{dir, engine} }

// Path returns where a module is, with what it was compiled to.
func (s *Store) Path(digest string) string { return filepath.Join(s.dir, digest+"-"+s.engine) }

// Has reports whether a module is there, which counts as a use of it.
func (s *Store) Has(digest string) bool {
	return os.Chtimes(s.Path(digest), time.Time{}, time.Now()) == nil
}

// Take puts what is kept of a module in the place of the module itself, a file on the same
// file system or another, where it stays whatever becomes of the store's. It reports
// whether it was there.
func (s *Store) Take(digest, module string) (bool, error) {
	if !s.Has(digest) {
		return false, nil
	}
	taken := filepath.Join(filepath.Dir(module), ".taken")
	err := os.Link(s.Path(digest), taken)
	if errors.Is(err, syscall.EXDEV) {
		err = duplicate(s.Path(digest), taken)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // just now it was
	}
	if err == nil {
		err = os.Rename(taken, module)
	}
	if err != nil {
		return false, fmt.Errorf("take a compiled module: %w", err)
	}
	return true, nil
}

// Lock returns when nobody else makes what is to be kept of a module, of all who have locked
// it in this folder, also in other processes.
func (s *Store) Lock(ctx context.Context, digest string) (unlock func(), err error) {
	if err = os.MkdirAll(s.dir, 0o700); err == nil {
		lock := flock.New(filepath.Join(s.dir, making+digest))
		if _, err = lock.TryLockContext(ctx, 20*time.Millisecond); err == nil {
			return func() {
				_ = os.Remove(lock.Path()) // who waits for it finds what there is then
				_ = lock.Close()
			}, nil
		}
	}
	return nil, fmt.Errorf("wait until the module is compiled: %w", err)
}

// making begins the names of files that are being made.
const making = "new-"

// duplicate copies a file to where there is none.
func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// A header is the first line of a file of the store: the contents that follow it, one
// behind the other. The first is the module.
type header []content

type content struct {
	Path string // below the folder of what was compiled; empty: the module
	Size int64
}

// maxHeader bounds a header, in bytes.
const maxHeader = 64 << 10

// Add adds a module, and what a compiler has made of it in folder.
func (s *Store) Add(digest, module, folder string) error {
	err := os.MkdirAll(s.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(s.dir, making)
	}
	if err != nil {
		return fmt.Errorf("keep a compiled module: %w", err)
	}
	err = errors.Join(pack(f, module, filepath.Join(folder, compiled)), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.Path(digest))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("keep a compiled module: %w", err)
	}
	s.prune(digest)
	return nil
}

// pack writes a module and all files below folder.
func pack(to io.Writer, module, folder string) error {
	paths, h := []string{module}, header{{}}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(folder, path)
			paths, h = append(paths, path), append(h, content{Path: name})
		}
		return err
	})
	var all int64
	for i, path := range paths {
		info, wrong := os.Lstat(path)
		if err = errors.Join(err, wrong); err != nil {
			return err
		}
		h[i].Size = info.Size()
		all += h[i].Size
	}
	if all > maxEntry {
		return fmt.Errorf("the module and its compiled code have %d MiB, more than %d", all>>20, maxEntry>>20)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(line) >= maxHeader {
		return errors.New("too many files")
	}
	if _, err := fmt.Fprintf(to, "%-*s\n", maxHeader-1, line); err != nil {
		return err
	}
	for i, path := range paths {
		if err := appendFile(to, path, h[i].Size); err != nil {
			return err
		}
	}
	return nil
}

func appendFile(to io.Writer, path string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(to, f, size)
	return err
}

// unpack lays out what a module was compiled to in the current folder, and returns the
// module.
func unpack(from io.Reader) ([]byte, error) {
	line := make([]byte, maxHeader)
	if _, err := io.ReadFull(from, line); err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, err
	}
	if len(h) == 0 || h[0].Path != "" {
		return nil, errors.New("it is not there")
	}
	module, err := io.ReadAll(io.LimitReader(from, h[0].Size))
	if err != nil {
		return nil, err
	}
	if int64(len(module)) != h[0].Size {
		return nil, io.ErrUnexpectedEOF
	}
	for _, c := range h[1:] {
		if err := layOut(from, c); err != nil {
			return nil, err
		}
	}
	return module, nil
}

func layOut(from io.Reader, c content) error {
	if !filepath.IsLocal(c.Path) {
		return fmt.Errorf("it has a file %q", c.Path)
	}
	path := filepath.Join(compiled, c.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, from, max(c.Size, 0))
	return errors.Join(err, f.Close())
}

// prune removes what was not used for longest, but not the module with that digest, nor
// what is being written, which needs its room, but what a peer that was killed has left half-written.
func (s *Store) prune(digest string) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	var kept int64
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil: // it is gone
		case !strings.HasPrefix(info.Name(), making):
			files = append(files, info)
		case time.Since(info.ModTime()) > time.Hour:
			os.Remove(filepath.Join(s.dir, info.Name()))
		default:
			kept += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		kept += f.Size()
		if kept > maxStore && !strings.HasPrefix(f.Name(), digest) {
			kept -= f.Size()
			os.Remove(filepath.Join(s.dir, f.Name()))
		}
	}
}
