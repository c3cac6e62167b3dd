package scratch

import "golang.org/x/sys/unix"

// Retains reports whether the file system of a folder may keep what a file no longer holds: btrfs keeps all that was
// written at once, up to 128 MiB, as long as some of it is held.
func Retains(folder string) bool {
	var s unix.Statfs_t
	return unix.Statfs(folder, &s) == nil && uint32(s.Type) == unix.BTRFS_SUPER_MAGIC
}
