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
	"get a handle of the peer":          handle(peer),
	"get a handle of a neighbour":       handle(victim),
	"enter the peer's namespaces":       enter("/proc/%d/ns/mnt", unix.CLONE_NEWNS, peer),
	"enter the first namespaces":        enter("/proc/%d/ns/net", unix.CLONE_NEWNET, new(1)),
	"slow the peer down":                setPriority,
	"get in front of all others":        inFront,
	"raise its limits":                  raiseLimits,
	"be spared when memory is short":    spared,
	"send a descriptor":                 call("sendmsg", raw(unix.SYS_SENDMSG, ^uintptr(0), 0, 0)),
	"take all of the owner's timers":    timers,
}

// seeOthers looks for whoever has a peer's home, or a neighbour's folder, on the command line.
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

// trace takes hold of a process without stopping it, which ends with this one.
func trace(pid *int) attempt {
	const seize = 0x4206
	return func() (string, error) {
		return fmt.Sprint("process ", *pid), raw(unix.SYS_PTRACE, seize, uintptr(*pid), 0, 0)()
	}
}

func memory(pid *int) attempt {
	return func() (string, error) {
		local := make([]byte, 8)
		remote := []unix.RemoteIovec{{Base: 0x400000, Len: len(local)}} // where programs begin
		iov := []unix.Iovec{{Base: &local[0]}}
		iov[0].SetLen(len(local))
		_, err := unix.ProcessVMReadv(*pid, iov, remote, 0)
		if errors.Is(err, unix.EFAULT) { // not there, but it looked
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

// handle gets one of a process, and by it one of its files.
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

// enter enters a namespace with one thread, which has a working folder of its own for that if it may.
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

// setPriority gives the peer the priority that it has.
func setPriority() (string, error) {
	now, err := unix.Getpriority(unix.PRIO_PROCESS, *peer) // 20 is usual, 1 is last
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
			continue // not limited by this
		}
		l.Max++
		if err := unix.Setrlimit(what, &l); err == nil {
			return fmt.Sprintf("limit %d of %d", what, l.Max), nil
		}
	}
	return "", errNothing
}

// timers makes more than a user with few programs needs: all that he has come from one store.
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

// decoy is a process that anybody of its user may get hold of, until its standard input ends.
func decoy() {
	anybody := ^uintptr(0)
	unix.Prctl(unix.PR_SET_PTRACER, anybody, 0, 0, 0) // an error means that nobody asks
	fmt.Println("decoy: is there")
	io.Copy(io.Discard, os.Stdin)
}
