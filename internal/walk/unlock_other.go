//go:build unix && !linux

package walk

import "golang.org/x/sys/unix"

// unlock gives permissions to a folder, and to none that a link of its name leads to. That it cannot is
// seen when the folder is opened.
func unlock(in int, name string) { unix.Fchmodat(in, name, 0o700, unix.AT_SYMLINK_NOFOLLOW) }
