//go:build unix

package scratch

import "golang.org/x/sys/unix"

// largeFile is the size on disk, in bytes, above which a file is remembered. Smaller files are too
// numerous.
const largeFile = 64 << 10

// room returns the bytes that a file occupies on disk, and its identity.
func room(s *unix.Stat_t) (bytes int64, id [2]uint64) {
	return int64(s.Blocks) * 512, [2]uint64{uint64(s.Dev), s.Ino} //nolint:unconvert // types differ from system to system
}

// Bounds of the minimum that a directory entry counts, in bytes. Empty files need room too. The upper bound
// protects a process with a few files where the file system has hardly any free inodes.
const (
	leastEntry = 4 << 10
	mostEntry  = 1 << 20
)

// LeastEntry returns the minimum bytes that a directory entry in a folder counts: the free bytes per free
// inode of its file system. A process that reaches its disk limit with empty files thus leaves inodes for
// others.
func LeastEntry(folder string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return leastEntry
	}
	return perFile(int64(s.Bfree)*int64(s.Bsize), int64(s.Ffree)) //nolint:unconvert // likewise
}

// perFile divides the free bytes by the free inodes; 0 inodes means unknown or unlimited.
func perFile(bytes, files int64) int64 {
	if files <= 0 {
		return leastEntry
	}
	return min(max(bytes/files, leastEntry), mostEntry)
}
