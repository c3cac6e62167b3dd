//go:build !linux

package scratch

// Retains reports whether the file system of a folder may keep the space of deleted parts of files
// allocated.
func Retains(string) bool { return false }
