package wasm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
)

var errExceeded = errors.New("exceeded")

// TestDeletedFileCountsOnce checks that a deleted file counts once, by its blocks, however often it is open.
func TestDeletedFileCountsOnce(t *testing.T) {
	const most, part = 1 << 20, 600 << 10
	q := newTestQuota(t.TempDir(), most)
	s := scratch{sysfs.DirFS(q.folder), q}
	var files []sys.File
	for range 2 {
		f, errno := s.OpenFile("file", sys.O_CREAT|sys.O_RDWR, 0o600)
		if errno != 0 {
			t.Fatal(errno)
		}
		files = append(files, f)
	}
	s.Unlink("file")
	defer func() {
		if err := recover(); err != nil {
			t.Error(err)
		}
	}()
	for range 4 { // replaces the contents
		files[0].Pwrite(make([]byte, part), 0)
	}
	files[1].Pwrite([]byte("x"), 16*most) // all before it takes no space
	if used, err := q.measure(); err != nil || used < part || used > part+3*blockSize {
		t.Errorf("uses %d bytes, %v; want %d", used, err, part)
	}
}

// newTestQuota returns a quota that panics with errExceeded.
func newTestQuota(folder string, most int64) *quota {
	return &quota{folder: folder, most: most, name: blockSize, open: make(map[*file]bool), exceeded: func(error) { panic(errExceeded) }}
}

// TestQuotaIsExact checks that a module stops within two blocks of its disk limit, and not before the limit,
// however it uses the disk.
func TestQuotaIsExact(t *testing.T) {
	const most = 1 << 20
	create := func(s scratch, name string) sys.File {
		f, errno := s.OpenFile(name, sys.O_CREAT|sys.O_RDWR, 0o600)
		if errno != 0 {
			panic(errno)
		}
		return f
	}
	for name, use := range map[string]func(scratch){
		"one write": func(s scratch) { create(s, "file").Write(make([]byte, 16*most)) },
		"small writes": func(s scratch) {
			for f := create(s, "file"); ; {
				f.Write(make([]byte, 100))
			}
		},
		"positioned writes": func(s scratch) {
			f := create(s, "file")
			for at := int64(0); ; at += 3 * blockSize {
				f.Pwrite(make([]byte, 10), at)
			}
		},
		"small files": func(s scratch) {
			for n := 0; ; n++ {
				f := create(s, fmt.Sprint(n))
				f.Write([]byte("x"))
				f.Close()
			}
		},
		"names": func(s scratch) {
			create(s, "file").Close()
			for n := 0; ; n++ {
				s.Link("file", fmt.Sprint(n))
			}
		},
		"folders": func(s scratch) {
			for n := 0; ; n++ {
				s.Mkdir(fmt.Sprint(n), 0o700)
			}
		},
		"deleted files": func(s scratch) {
			for n := 0; ; n++ {
				f := create(s, fmt.Sprint(n))
				s.Unlink(fmt.Sprint(n))
				f.Write(make([]byte, 50_000))
			}
		},
		"moves": func(s scratch) {
			s.Mkdir("a", 0o700)
			s.Mkdir("z", 0o700)
			for f := create(s, "a/file"); ; {
				f.Write(make([]byte, 1000))
				s.Rename("a/file", "z/file")
				s.Rename("z/file", "a/file")
			}
		},
		"space given back": func(s scratch) {
			f := create(s, "file")
			for range 10 {
				f.Pwrite(make([]byte, most/2), 0)
				f.Truncate(0)
				create(s, "other").Close()
				s.Unlink("other")
			}
			f.Pwrite(make([]byte, 2*most), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			q := newTestQuota(folder, most)
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, errExceeded) {
					t.Fatalf("ended with %v", err)
				}
				if used, err := q.measure(); err != nil || used <= most || used > most+2*blockSize {
					t.Errorf("used %d bytes of %d, %v", used, most, err)
				}
			}()
			use(scratch{sysfs.DirFS(folder), q})
			t.Error("not ended")
		})
	}
}
