//go:build unix

package scratch

import (
	"io/fs"
	"syscall"
)

// largeFile is what a file takes, in bytes, that is worth remembering: it may be moved while it is looked for.
const largeFile = 64 << 10

// room returns what a file takes on disk, and whether it may be found several times, since it has several
// names or may be given another, and which file it is then.
func room(info fs.FileInfo) (bytes int64, id [2]uint64, several bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	bytes = int64(s.Blocks) * 512                                                                              //nolint:unconvert // types differ from system to system
	return bytes, [2]uint64{uint64(s.Dev), uint64(s.Ino)}, !info.IsDir() && (s.Nlink > 1 || bytes > largeFile) //nolint:unconvert // likewise
}
