//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processes = map[string]attempt{
	"see other processes":               seeOthers,
	"signal the peer":                   signal(peer),
	"signal a neighbour":                signal(victim),
	"trace the peer":                    trace(peer),
	"trace a neighbour":                 trace(victim),
	"read the peer's memory":            memory(peer),
	"read a neighbour's memory":         memory(victim),
	"read a neighbour's memory by file": func() (string, error) { return openToRead(fmt.Sprintf("/proc/%d/mem", *victim)) },
	"read a neighbour's map":            func() (string, error) { return readFile(fmt.Sprintf("/proc/%d/maps", *victim)) },
	"get a handle to the peer":          handle(peer),
	"get a handle to a neighbour":       handle(victim),
	"enter the peer's namespaces":       enter("/proc/%d/ns/mnt", unix.CLONE_NEWNS, peer),
	"enter the first namespaces":        enter("/proc/%d/ns/net", unix.CLONE_NEWNET, new(1)),
	"slow the peer down":                setPriority,
	"get in front of all others":        inFront,
	"raise its limits":                  raiseLimits,
	"be spared when memory is short":    spared,
	"send a descriptor":                 call("sendmsg", raw(unix.SYS_SENDMSG, ^uintptr(0), 0, 0)),
	"take all of the owner's timers":    timers,
}

// seeOthers looks for processes of a peer or a neighbour by their command lines.
func seeOthers() (string, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		return "", errors.Join(err, errNothing)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path)
		if text := string(line); strings.Contains(text, "p2prun") || strings.Contains(text, "stepper") || strings.Contains(text, "p2pboot\x00") {
			return text, nil
		}
	}
	return "", errNothing
}

func signal(pid *int) attempt {
	return func() (string, error) { return fmt.Sprint("process ", *pid), unix.Kill(*pid, 0) }
}

// trace attaches to a process without stopping it, until this process ends.
func trace(pid *int) attempt {
	const seize = 0x4206
	return func() (string, error) {
		return fmt.Sprint("process ", *pid), raw(unix.SYS_PTRACE, seize, uintptr(*pid), 0, 0)()
	}
}

func memory(pid *int) attempt {
	return func() (string, error) {
		local := make([]byte, 8)
		remote := []unix.RemoteIovec{{Base: 0x400000, Len: len(local)}} // where programs usually begin
		iov := []unix.Iovec{{Base: &local[0]}}
		iov[0].SetLen(len(local))
		_, err := unix.ProcessVMReadv(*pid, iov, remote, 0)
		if errors.Is(err, unix.EFAULT) { // the address is not mapped, but the call was allowed
			err = nil
		}
		return fmt.Sprintf("%q", local), err
	}
}

func openToRead(path string) (string, error) {
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return path, err
}

// handle gets a handle of a process, and through it one of its open files.
func handle(pid *int) attempt {
	return func() (string, error) {
		fd, err := unix.PidfdOpen(*pid, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		got, err := unix.PidfdGetfd(fd, 0, 0)
		if err == nil {
			unix.Close(got)
		}
		return "its standard input", err
	}
}

// enter enters a namespace with one thread. It first unshares the thread's working directory, if it
// may.
func enter(path string, kind int, pid *int) attempt {
	return func() (string, error) {
		runtime.LockOSThread() // until this process ends
		unix.Unshare(unix.CLONE_FS)
		fd, err := unix.Open(fmt.Sprintf(path, *pid), unix.O_RDONLY, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		return "namespaces", unix.Setns(fd, kind)
	}
}

// setPriority sets the peer's priority to its current value.
func setPriority() (string, error) {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, *peer) // 20 is the default, 1 the lowest
	if err != nil {
		return "", err
	}
	return "its priority", unix.Setpriority(unix.PRIO_PROCESS, *peer, 20-now)
}

func inFront() (string, error) {
	return anyOf(
		func() (string, error) { return "a higher priority", unix.Setpriority(unix.PRIO_PROCESS, 0, -20) },
		func() (string, error) {
			return "real time", unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: 1, Priority: 50}, 0)
		},
	)()
}

func raiseLimits() (string, error) {
	for _, what := range []int{unix.RLIMIT_CORE, unix.RLIMIT_NOFILE, unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		if err := unix.Getrlimit(what, &l); err != nil {
			return "", err
		}
		if l.Max == unix.RLIM_INFINITY {
			continue // this limit does not restrict the process
		}
		l.Max++
		if err := unix.Setrlimit(what, &l); err == nil {
			return fmt.Sprintf("limit %d of %d", what, l.Max), nil
		}
	}
	return "", errNothing
}

// timers creates more timers than a user with few programs needs, because all timers of a user come
// from one pool.
func timers() (string, error) {
	const most = 2000
	for n := range most {
		var id int32
		if err := raw(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&id)))(); err != nil {
			return "", fmt.Errorf("timer %d: %w", n, err)
		}
	}
	return fmt.Sprint(most), nil
}

func spared() (string, error) {
	return "oom_score_adj", os.WriteFile("/proc/self/oom_score_adj", []byte("-500"), 0)
}

// decoy is a process that any process of its user may trace, until its standard input ends.
func decoy() {
	anybody := ^uintptr(0)
	unix.Prctl(unix.PR_SET_PTRACER, anybody, 0, 0, 0) // fails only where the kernel has no such restriction
	fmt.Println("decoy: is there")
	io.Copy(io.Discard, os.Stdin)
}
