//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// planted is the name of all files that hostile writes in forbidden places. The test looks for them
// from outside.
const planted = "p2pmpi-planted"

var files = map[string]attempt{
	"list the owner's home":                 listHome,
	"read the owner's SSH key":              read(home, ".ssh/id_ed25519"),
	"read the peer's identity":              read(home, "identity"),
	"read the peer's lock":                  read(home, "lock"),
	"list the peer's cache":                 list(home, "cache"),
	"read another file of the owner's":      read(outside, "secret"),
	"list a neighbour's folder":             list(folder, ""),
	"write into the owner's home":           plant(home, ""),
	"write into the peer's cache":           plant(home, "cache"),
	"write elsewhere of the owner's":        plant(outside, ""),
	"write into a neighbour's folder":       plant(folder, ""),
	"write into the system's folders":       plantAny("/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/root", "/var", "/var/tmp", "/home", "/run", "/dev", "/proc", "/sys"),
	"write beside the program":              func() (string, error) { return plantIn(filepath.Dir(self())) },
	"overwrite the program":                 overwriteSelf,
	"read through a symbolic link":          throughLink,
	"write through a symbolic link":         writeThroughLink,
	"read through a hard link":              throughHardLink,
	"climb out of the folder":               climb,
	"read through /proc/1/root":             throughRoot("/proc/1/root"),
	"read through the peer's /proc/PID":     func() (string, error) { return throughRoot(fmt.Sprintf("/proc/%d/root", *peer))() },
	"read through /proc/self/root":          throughRoot("/proc/self/root/proc/1/cwd/../.."),
	"write through /proc/1/root":            func() (string, error) { return plantIn("/proc/1/root" + *outside) },
	"write through the peer's /proc/PID":    func() (string, error) { return plantIn(fmt.Sprintf("/proc/%d/root%s", *peer, *outside)) },
	"write into a neighbour by /proc/PID":   func() (string, error) { return plantIn(fmt.Sprintf("/proc/%d/cwd", *victim)) },
	"read the peer's environment":           func() (string, error) { return readFile(fmt.Sprintf("/proc/%d/environ", *peer)) },
	"open the peer's files by /proc/PID/fd": func() (string, error) { return listFolder(fmt.Sprintf("/proc/%d/fd", *peer)) },
	"own descriptors that lead out":         descriptors,
	"change the system by /proc/sys":        writable("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger"),
	"change the system by /sys":             writable("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/kernel/uevent_helper"),
	"change control groups":                 writable("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs"),
	"read the system's memory":              anyOf(read(&slash, "proc/kcore"), read(&slash, "dev/mem"), read(&slash, "dev/kmsg"), read(&slash, "dev/port")),
	"make a device and read it":             device,
	"read the shadow passwords":             anyOf(read(&slash, "etc/shadow"), read(&slash, "etc/ssh/ssh_host_ed25519_key")),
	"write where all may, /tmp":             func() (string, error) { return private("/tmp") },
	"write where all may, /dev/shm":         func() (string, error) { return private("/dev/shm") },
	"open a file by its handle":             byHandle,
	"keep bytes beside a file": func() (string, error) {
		return "an attribute", unix.Setxattr("own", "user."+planted, []byte("planted"), 0)
	},
}

var slash = "/"

func read(dir *string, name string) attempt {
	return func() (string, error) { return readFile(filepath.Join(*dir, name)) }
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 200)
	n, err := f.Read(b)
	if n == 0 && err == nil {
		err = errNothing
	}
	return string(b[:n]), err
}

func list(dir *string, name string) attempt {
	return func() (string, error) { return listFolder(filepath.Join(*dir, name)) }
}

func listFolder(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		err = errNothing
	}
	return fmt.Sprint(entries), err
}

// listHome succeeds if it sees more of the home than the path to the process's own directory.
func listHome() (string, error) {
	entries, err := os.ReadDir(*home)
	if err == nil && len(entries) == 1 && entries[0].Name() == "scratch" {
		err = errNothing
	}
	return fmt.Sprint(entries), err
}

func plant(dir *string, name string) attempt {
	return func() (string, error) { return plantIn(filepath.Join(*dir, name)) }
}

// plantIn writes a file and removes it again. An observer may miss the file, but the write has
// succeeded.
func plantIn(dir string) (string, error) {
	path := filepath.Join(dir, planted)
	if err := os.WriteFile(path, []byte("planted"), 0o666); err != nil {
		return "", err
	}
	return path, os.Remove(path)
}

func plantAny(dirs ...string) attempt {
	var tries []attempt
	for _, dir := range dirs {
		tries = append(tries, plant(&dir, ""))
	}
	return anyOf(tries...)
}

// private writes into a directory of which a process may have a private instance. It leaves the
// file there for the test to check.
func private(dir string) (string, error) {
	path := filepath.Join(dir, planted)
	if err := os.WriteFile(path, []byte("planted"), 0o666); err != nil {
		return "", err
	}
	return "", errors.New("written into a directory that should be private")
}

func openToWrite(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return path, err
}

// overwriteSelf truncates the program to its current length. While the program runs, the system
// refuses that with ETXTBSY even to a process with permission, so that error counts as success.
func overwriteSelf() (string, error) {
	info, err := os.Stat(self())
	if err != nil {
		return "", err
	}
	err = os.Truncate(self(), info.Size())
	if errors.Is(err, unix.ETXTBSY) {
		err = nil
	}
	return self(), err
}

// writable opens files for writing, and writes nothing.
func writable(paths ...string) attempt {
	var tries []attempt
	for _, path := range paths {
		tries = append(tries, func() (string, error) { return openToWrite(path) })
	}
	return anyOf(tries...)
}

func throughLink() (string, error) {
	if err := os.Symlink(filepath.Join(*home, "identity"), "link-to-identity"); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return readFile("link-to-identity") // the link stays: the test collects it
}

func writeThroughLink() (string, error) {
	if err := os.Symlink("/", "link-to-all"); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return plantIn("link-to-all" + *outside)
}

func throughHardLink() (string, error) {
	if err := os.Link(filepath.Join(*home, "identity"), "hard-link"); err != nil {
		return "", err
	}
	return readFile("hard-link")
}

// climb looks for the home in the directories above its own.
func climb() (string, error) {
	for up := ".."; strings.Count(up, "/") < 12; up += "/.." {
		if got, err := readFile(filepath.Join(up, "identity")); err == nil {
			return got, nil
		}
		if got, err := readFile(up + *home + "/identity"); err == nil {
			return got, nil
		}
	}
	return "", errNothing
}

func throughRoot(root string) attempt {
	return func() (string, error) { return readFile(root + *home + "/identity") }
}

// descriptors inspects the descriptors that the process has inherited from its peer.
func descriptors() (string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		var fd int
		fmt.Sscan(e.Name(), &fd)
		target, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.HasPrefix(target, *home) {
			return target, nil
		}
		for up := ".."; fd > 2 && strings.Count(up, "/") < 12; up += "/.." {
			if got, err := unix.Openat(fd, up+*home+"/identity", unix.O_RDONLY, 0); err == nil {
				unix.Close(got)
				return "the identity from " + target, nil
			}
		}
	}
	return "", errNothing
}

// device makes the devices of the machine's memory and of its first disk, and reads them.
func device() (string, error) {
	if err := errors.Join(unix.Mknod("mem", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))), unix.Mknod("disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))); err != nil {
		return "", err
	}
	defer os.Remove("mem")
	defer os.Remove("disk")
	return anyOf(func() (string, error) { return readFile("mem") }, func() (string, error) { return readFile("disk") })()
}

// byHandle opens the root of the file system of its directory by a file handle, which bypasses all
// mounts.
func byHandle() (string, error) {
	_, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, ".", 0)
	if err != nil {
		return "", err
	}
	here, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(here)
	inode := []byte{2, 0, 0, 0, 0, 0, 0, 0} // the root's inode on ext4
	fd, err := unix.OpenByHandleAt(here, unix.NewFileHandle(1, inode), unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EACCES) {
		return "", err
	}
	unix.Close(fd)
	return fmt.Sprintf("handles are opened, mount %d: %v", mount, err), nil
}
