package walk

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unlock gives permissions to a folder, and to none that a link of its name leads to. That it cannot is
// seen when the folder is opened.
func unlock(in int, name string) {
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}
