package scratch

import "golang.org/x/sys/unix"

// Retains reports whether the file system of a folder may keep the space of deleted parts of files
// allocated. btrfs keeps a whole extent, up to 128 MiB, as long as a file uses part of it.
func Retains(folder string) bool {
	var s unix.Statfs_t
	return unix.Statfs(folder, &s) == nil && uint32(s.Type) == unix.BTRFS_SUPER_MAGIC
}
