//go:build unix && !linux

package walk

import "golang.org/x/sys/unix"

// unlock adds permissions to a folder, but never to the target of a symbolic link. A failure is reported when the
// folder is opened.
func unlock(in int, name string) { unix.Fchmodat(in, name, 0o700, unix.AT_SYMLINK_NOFOLLOW) }
