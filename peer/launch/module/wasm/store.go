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

// A Store keeps the most recently used compiled modules, by digest. It is safe for concurrent use.
type Store struct{ dir, engine string }

// maxStore bounds the contents of a Store, in bytes.
const maxStore = 512 << 20

// maxEntry bounds a module with its compiled code, in bytes, so that several fit.
const maxEntry = maxStore / 4

// NewStore returns the store in a folder for code compiled by the engine of that name. The folder is
// created when needed. Several engines may share a folder.
func NewStore(dir, engine string) *Store { return &Store{dir, engine} }

// Path returns the path of a module with its compiled code.
func (s *Store) Path(digest string) string { return filepath.Join(s.dir, digest+"-"+s.engine) }

// Has reports whether a module is in the store, and marks it as used.
func (s *Store) Has(digest string) bool {
	return os.Chtimes(s.Path(digest), time.Time{}, time.Now()) == nil
}

// Take replaces the file module by a link to the stored file, or by a copy if the store is on another file
// system. The link remains valid if the store evicts its file. Take reports whether the module was in the
// store.
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
		return false, nil // the file was just evicted
	}
	if err == nil {
		err = os.Rename(taken, module)
	}
	if err != nil {
		return false, fmt.Errorf("read a compiled module: %w", err)
	}
	return true, nil
}

// Lock waits until no other process or goroutine holds the lock of the module in this folder, and takes it.
// Only the holder may compile the module.
func (s *Store) Lock(ctx context.Context, digest string) (unlock func(), err error) {
	if err = os.MkdirAll(s.dir, 0o700); err == nil {
		lock := flock.New(filepath.Join(s.dir, tempPrefix+digest))
		if _, err = lock.TryLockContext(ctx, 20*time.Millisecond); err == nil {
			return func() {
				_ = os.Remove(lock.Path()) // waiting processes then find the compiled module
				_ = lock.Close()
			}, nil
		}
	}
	return nil, fmt.Errorf("wait for the compilation of the module: %w", err)
}

// tempPrefix is the prefix of files that are being written.
const tempPrefix = "new-"

// duplicate copies a file. The destination must not exist.
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

// A header is the first line of a file of the store. It lists the contents that follow, one after the
// other. The first is the module.
type header []content

type content struct {
	Path string // path relative to the folder of compiled code, or empty for the module
	Size int64
}

// maxHeader bounds a header, in bytes.
const maxHeader = 64 << 10

// Add adds a module with the compiled code in folder.
func (s *Store) Add(digest, module, folder string) error {
	err := os.MkdirAll(s.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(s.dir, tempPrefix)
	}
	if err != nil {
		return fmt.Errorf("store a compiled module: %w", err)
	}
	err = errors.Join(pack(f, module, filepath.Join(folder, compiled)), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.Path(digest))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("store a compiled module: %w", err)
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
		return fmt.Errorf("the module and its compiled code have %d MiB, at most %d are allowed", all>>20, maxEntry>>20)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(line) >= maxHeader {
		return errors.New("too many files of compiled code")
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

// unpack writes a module's compiled code to the current folder, and returns the module.
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
		return nil, errors.New("the module is missing")
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
		return fmt.Errorf("compiled code with the file name %q", c.Path)
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

// prune removes the least recently used modules, except the one with the given digest. Files that are being
// written count towards the limit and stay, unless they are older than an hour. Such old files were left by
// a peer that was killed.
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
		case err != nil: // the file was removed meanwhile
		case !strings.HasPrefix(info.Name(), tempPrefix):
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
