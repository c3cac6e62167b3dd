package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// guest is the user and group of a program in its namespace. Outside the namespace it is the peer's own
// user, or nobody if the peer runs as root.
const (
	guest  = 1000
	nobody = 65534
)

// Outer changes attributes so that the supervisor becomes the first process of a new user and PID
// namespace. Its descendants then end with it, and can reach no process outside.
func Outer(a *syscall.SysProcAttr) {
	a.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: guest, HostID: nobody, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}, {ContainerID: guest, HostID: nobody, Size: 1}}
		a.GidMappingsEnableSetgroups = true
		return
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: guest, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: guest, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // to create the other namespaces
}

// Inner adds to the attributes of the stage the namespaces that only the program uses.
func Inner(a *syscall.SysProcAttr) {
	a.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
}

// CountsProcesses reports whether the kernel counts processes per user namespace, as it does since Linux
// 5.14.
func CountsProcesses() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor) // 0 if the format is unknown
	return major > 5 || major == 5 && minor >= 14
}

// HandOver makes the program's files accessible to the user that it runs as, if that is not the peer's
// user. The supervisor calls it within its namespace before it forks.
func HandOver(p Plan) error {
	if !p.Means.Namespaces || os.Geteuid() == guest {
		return nil
	}
	if !p.Tool && !p.own() { // the owner's files stay unchanged
		info, err := os.Stat(p.Program)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o005 != 0o005 {
			err = os.Chmod(p.Program, info.Mode().Perm()|0o055)
		}
		if err != nil {
			return err
		}
	}
	if err := handOverOutput(); err != nil {
		return err
	}
	return filepath.WalkDir(p.Scratch, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, guest, guest)
		}
		return err
	})
}

// handOverOutput lets the program open its own output as /dev/stdout and /dev/stderr. It changes only
// pipes, which belong to the program, and no device of the machine.
func handOverOutput() error {
	for _, output := range []int{1, 2} {
		var s unix.Stat_t
		err := unix.Fstat(output, &s)
		if err == nil && s.Mode&unix.S_IFMT == unix.S_IFIFO {
			err = unix.Fchown(output, guest, guest)
		}
		if err != nil {
			return fmt.Errorf("hand over output: %w", err)
		}
	}
	return nil
}

// Guard protects a supervisor's memory and descriptors from the program.
func Guard() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// becomeGuest permanently drops all privileges beyond those of an ordinary user. Without namespaces there
// is no other user, and the process keeps its user.
func becomeGuest(namespaces bool) error {
	for c := 0; ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if err == unix.EINVAL || err == unix.EPERM { // there are no more, or it is an ordinary user
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	if namespaces && os.Geteuid() != guest {
		if err := leaveRoot(); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func leaveRoot() error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave groups: %w", err)
	}
	if err := syscall.Setresgid(guest, guest, guest); err != nil {
		return fmt.Errorf("change group: %w", err)
	}
	if err := syscall.Setresuid(guest, guest, guest); err != nil {
		return fmt.Errorf("change user: %w", err)
	}
	return nil
}
