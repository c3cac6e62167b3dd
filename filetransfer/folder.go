package filetransfer

import (
	"io/fs"
	"path/filepath"
	"time"
)

// A folder is the folder of a Store. See Store for its layout.
type folder string

func (f folder) content(d Digest) string {
	name := d.String()
	return filepath.Join(string(f), name[:2], name)
}

func (f folder) partial(d Digest) string { return filepath.Join(string(f), partialDir, d.String()) }

func (f folder) page(key Digest) string {
	return filepath.Join(string(f), webDir, key.String()+".json")
}

// An indexed is a file left by an earlier process.
type indexed struct {
	digest   Digest
	bytes    int64
	used     time.Time
	complete bool
}

// scan lists the store's files. It ignores other files.
func (f folder) scan() (files []indexed, err error) {
	err = filepath.WalkDir(string(f), func(path string, e fs.DirEntry, err error) error {
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
		if complete := path == f.content(d); complete || path == f.partial(d) {
			files = append(files, indexed{d, info.Size(), info.ModTime(), complete})
		}
		return nil
	})
	return files, err
}
