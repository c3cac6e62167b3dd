//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bySetuid is the name of an attempt that needs a file that only root can provide.
const bySetuid = "be root by a setuid program"

var kernel = map[string]attempt{
	bySetuid:                      becomeRoot,
	"own privileges":              privileges,
	"become the owner":            becomeOwner,
	"mount a file system":         mount("mount", func() error { return unix.Mount("none", ".", "no-such-file-system", 0, "") }),
	"mount by the newer calls":    mount("fsopen", func() error { _, err := unix.Fsopen("no-such-file-system", 0); return err }),
	"bind a folder":               mount("bind", func() error { return unix.Mount("nothing", ".", "", unix.MS_BIND, "") }),
	"take a mount away":           mount("umount", func() error { return unix.Unmount(".", 0) }),
	"change the root":             call("chroot", func() error { return unix.Chroot(".") }),
	"swap the root":               mount("pivot_root", func() error { return unix.PivotRoot("nothing", "nothing") }),
	"new user namespace":          call("unshare", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }),
	"new mount namespace":         call("unshare", func() error { return unix.Unshare(unix.CLONE_NEWNS) }),
	"new network namespace":       call("unshare", func() error { return unix.Unshare(unix.CLONE_NEWNET) }),
	"new namespaces by clone":     clone,
	"add a key":                   call("add_key", addKey),
	"look for keys":               call("keyctl", keyring),
	"request a key":               call("request_key", requestKey),
	"load a module":               call("init_module", raw(unix.SYS_INIT_MODULE, 0, 0, 0)),
	"load a module from a file":   call("finit_module", raw(unix.SYS_FINIT_MODULE, ^uintptr(0), 0, 0)),
	"unload a module":             call("delete_module", raw(unix.SYS_DELETE_MODULE, 0, 0)),
	"load another kernel":         call("kexec_load", raw(unix.SYS_KEXEC_LOAD, 0, 99, 0, 0)),
	"load a program into it":      call("bpf", raw(unix.SYS_BPF, 99, 0, 0)),
	"watch it by perf":            call("perf_event_open", raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, ^uintptr(0), ^uintptr(0), 0)),
	"handle its page faults":      call("userfaultfd", raw(unix.SYS_USERFAULTFD, 0)),
	"read its log":                call("syslog", func() error { _, err := unix.Klogctl(3, make([]byte, 100)); return err }),
	"watch all files":             call("fanotify_init", raw(unix.SYS_FANOTIFY_INIT, 0, 0)),
	"switch swapping":             call("swapoff", raw(unix.SYS_SWAPOFF, 0)),
	"set the clock":               call("settimeofday", raw(unix.SYS_SETTIMEOFDAY, 1, 0)),
	"set the machine's name":      call("sethostname", raw(unix.SYS_SETHOSTNAME, 1, 1)),
	"lock the owner's share":      lockMemory,
	"make a memory segment":       call("shmget", segment),
	"make a message queue":        queue,
	"a new session with the keys": call("keyctl", raw(unix.SYS_KEYCTL, 1, 0)),
}

// mount is a mount call with invalid arguments. A process with permission gets an error too, but a different
// one: no such file system, no such directory, or no mount. The attempt is therefore harmless on a machine
// without a sandbox.
func mount(name string, f func() error) attempt {
	return func() (string, error) {
		err := f()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Sprintf("%s: %v", name, err), nil
	}
}

// becomeRoot runs a setuid program of root, and reports the user that it runs as.
func becomeRoot() (string, error) {
	out, err := exec.CommandContext(context.Background(), *setuid, "-u").CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%w: %w: %s", errUntried, err, said)
	}
	if said != "0" {
		return "", fmt.Errorf("the program runs as user %s", said)
	}
	return "user 0", nil
}

// privileges reports the privileges in the process's status.
func privileges() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	var got []string
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		switch {
		case len(f) != 2:
		case strings.HasPrefix(f[0], "Cap") && f[0] != "CapBnd:" && strings.Trim(f[1], "0") != "", f[0] == "NoNewPrivs:" && f[1] == "0", f[0] == "Seccomp:" && f[1] != "2":
			got = append(got, strings.Join(f, " "))
		}
	}
	if len(got) == 0 {
		return "", errors.New("no capability, no new privileges, filtered calls")
	}
	return strings.Join(got, ", "), nil
}

// becomeOwner tries to become root, which owns the home where tests run, and reads the owner's key.
func becomeOwner() (string, error) {
	err := errors.Join(unix.Setresgid(0, 0, 0), unix.Setresuid(0, 0, 0))
	got, failed := readFile(*home + "/.ssh/id_ed25519")
	return got, errors.Join(failed, err)
}

func clone() (string, error) {
	c := exec.CommandContext(context.Background(), self(), "child")
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	return "a child in namespaces of its own", c.Run()
}

func addKey() error {
	_, err := unix.AddKey("user", planted, []byte("planted"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

func keyring() error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	return err
}

func requestKey() error {
	_, err := unix.RequestKey("user", planted, "", 0)
	return err
}

// lockMemory locks as much memory as a user may lock in total on most systems.
func lockMemory() (string, error) {
	b, err := unix.Mmap(-1, 0, 8<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return "", err
	}
	return "8 MiB", unix.Mlock(b)
}

// segment creates a System V shared memory segment, which would outlive the process.
func segment() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err == nil {
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	return err
}

// queue creates a POSIX message queue, which would outlive the process.
func queue() (string, error) {
	name := append([]byte(planted), 0)
	defer raw(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])))()
	return call("mq_open", raw(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), uintptr(unix.O_CREAT|unix.O_RDWR), 0o600, 0))()
}
