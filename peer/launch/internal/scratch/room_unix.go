//go:build unix

package scratch

import "golang.org/x/sys/unix"

// largeFile is what a file takes, in bytes, that is worth remembering. Those that are not are too many.
const largeFile = 64 << 10

// room returns what a file takes on disk, and which file it is.
func room(s *unix.Stat_t) (bytes int64, id [2]uint64) {
	return int64(s.Blocks) * 512, [2]uint64{uint64(s.Dev), s.Ino} //nolint:unconvert // types differ from system to system
}

// Bounds of what a name counts at least, in bytes: what is empty takes room too, and where there is next to no room for
// more files, one that has some is not ended for that.
const (
	leastEntry = 4 << 10
	mostEntry  = 1 << 20
)

// LeastEntry returns what a name counts at least in a folder, in bytes: as much as is free for each file that its
// file system has room for. So who has his limit of disk in empty files leaves others room for theirs.
func LeastEntry(folder string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return leastEntry
	}
	return perFile(int64(s.Bfree)*int64(s.Bsize), int64(s.Ffree)) //nolint:unconvert // likewise
}

// perFile divides what is free by how many files that is for; 0 is not known, or without end.
func perFile(bytes, files int64) int64 {
	if files <= 0 {
		return leastEntry
	}
	return min(max(bytes/files, leastEntry), mostEntry)
}
