package walk

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unlock adds permissions to a folder, but never to the target of a symbolic link. A failure is reported when the
// folder is opened.
func unlock(in int, name string) {
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
