package wasm

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// blockSize is the unit, in bytes, in which file systems allocate disk space.
const blockSize = 4 << 10

// A quota limits the disk usage of a module's files, except for a block or two. Only the module changes its
// folder, and it waits for each of its calls, so no file moves while the quota measures.
type quota struct {
	folder   string
	most     int64          // bytes; 0: no limit
	name     int64          // minimum bytes that a name counts
	left     int64          // bytes that may be written before the next measurement
	open     map[*file]bool // open files
	exceeded func(error)    // called when the files use more than most
}

// endModule ends the runner, because its module exceeds a limit. The peer then measures the files that
// the module has left behind, to tell the submitter the limit (package launch, endedByLimit).
func endModule(err error) { os.Exit(tell(exitTrap, fmt.Errorf("the module was ended: %w", err))) }

// spend counts bytes that the module has written, and measures once they may exceed the limit.
func (q *quota) spend(bytes int64) {
	q.left -= (bytes + blockSize - 1) / blockSize * blockSize
	if q.most == 0 || q.left >= 0 {
		return
	}
	used, err := q.measure()
	if q.left = q.most - used; err != nil {
		q.left = 0
	}
	if used > q.most {
		q.exceeded(fmt.Errorf("its files use %d bytes of disk, the limit is %d", used, q.most))
	}
}

// measure returns the bytes that the files occupy on disk. Further names of a file count as empty files.
func (q *quota) measure() (used int64, err error) {
	seen := make(map[uint64]bool)
	err = walk.Walk(q.folder, func(e *walk.Entry) error {
		bytes := e.Stat.Blocks * 512
		if e.Stat.Nlink > 1 && !e.IsFolder() {
			if seen[e.Stat.Ino] {
				bytes = 0
			}
			seen[e.Stat.Ino] = true
		}
		used += max(bytes, q.name)
		return nil
	})
	return used + q.deleted(), err
}

// mostFDs bounds the search for the descriptors of open files.
const mostFDs = 1 << 20

// deleted returns the bytes on disk of the deleted files that are open, each once. The files do not tell their
// descriptors, so deleted looks for these.
func (q *quota) deleted() (used int64) {
	type identity struct{ device, inode uint64 }
	files := make(map[identity]bool)
	for f := range q.open {
		if s, errno := f.Stat(); errno == 0 && s.Nlink == 0 {
			files[identity{s.Dev, s.Ino}] = true
		}
	}
	var s unix.Stat_t
	for fd := 0; fd < mostFDs && len(files) > 0; fd++ {
		if unix.Fstat(fd, &s) != nil {
			continue
		}
		if id := (identity{uint64(s.Dev), s.Ino}); files[id] { //nolint:unconvert // its type differs from system to system
			used += s.Blocks * 512
			delete(files, id)
		}
	}
	return used
}

// write writes b by calls of next, none of which writes more than a block above the limit.
func (q *quota) write(b []byte, next func([]byte) (int, sys.Errno)) (n int, errno sys.Errno) {
	for {
		part := b[n:min(int64(len(b)), int64(n)+max(q.left, blockSize))]
		k, errno := next(part)
		n += k
		q.spend(int64(k))
		if n == len(b) || k == 0 || errno != 0 {
			return n, errno
		}
	}
}

func (s scratch) OpenFile(path string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	opened, errno := s.FS.OpenFile(path, flag, perm)
	if errno != 0 || s.most == 0 {
		return opened, errno
	}
	if flag&sys.O_CREAT != 0 {
		s.spend(s.name)
	}
	f := &file{opened, s.quota}
	s.open[f] = true
	return f, 0
}

func (s scratch) Mkdir(path string, perm fs.FileMode) sys.Errno {
	errno := s.FS.Mkdir(path, perm)
	s.spend(s.name)
	return errno
}

func (s scratch) Link(from, to string) sys.Errno {
	errno := s.FS.Link(from, to)
	s.spend(s.name)
	return errno
}

// A file is an open file under a quota.
type file struct {
	sys.File
	quota *quota
}

func (f *file) Write(b []byte) (int, sys.Errno) { return f.quota.write(b, f.File.Write) }

func (f *file) Pwrite(b []byte, offset int64) (int, sys.Errno) {
	return f.quota.write(b, func(part []byte) (int, sys.Errno) {
		n, errno := f.File.Pwrite(part, offset)
		offset += int64(n)
		return n, errno
	})
}

func (f *file) Close() sys.Errno {
	delete(f.quota.open, f)
	return f.File.Close()
}
