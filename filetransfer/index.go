package filetransfer

import (
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// index registers the files of the store's directory in the order of their last use. Partial files count
// as used before all others, so they are evicted first.
func (s *Store) index() error {
	files, err := s.scan()
	if err != nil {
		return err
	}
	slices.SortStableFunc(files, func(a, b indexed) int {
		switch {
		case a.complete == b.complete:
			return a.used.Compare(b.used)
		case b.complete:
			return -1
		}
		return 1
	})
	for _, f := range files {
		if s.items[f.digest] != nil { // a partial file superseded by the complete one
			if err := s.remove(f.digest); err != nil {
				return err
			}
		}
		it := &item{bytes: f.bytes, stamped: f.used, complete: f.complete}
		s.add(f.digest, it)
		it.last = f.used
	}
	return nil
}

// An indexed is a file left by an earlier process.
type indexed struct {
	digest   Digest
	bytes    int64
	used     time.Time
	complete bool
}

// scan lists the store's files. It ignores other files.
func (s *Store) scan() (files []indexed, err error) {
	err = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		d, err := ParseDigest(e.Name())
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if complete := path == s.Path(d); complete || path == s.partialPath(d) {
			files = append(files, indexed{d, info.Size(), info.ModTime(), complete})
		}
		return nil
	})
	return files, err
}
