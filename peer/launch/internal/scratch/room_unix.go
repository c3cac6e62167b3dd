//go:build unix

package scratch

import (
	"io/fs"
	"syscall"
)

// room returns what a file takes on disk, and whether it has several names, and which
// file it is then.
func room(info fs.FileInfo) (bytes int64, id [2]uint64, several bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	return int64(s.Blocks) * 512, [2]uint64{uint64(s.Dev), uint64(s.Ino)}, s.Nlink > 1 && !info.IsDir() //nolint:unconvert // types differ from system to system
}
