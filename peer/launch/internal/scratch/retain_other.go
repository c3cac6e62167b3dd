//go:build !linux

package scratch

// Retains reports whether the file system of a folder may keep what a file no longer holds.
func Retains(string) bool { return false }
