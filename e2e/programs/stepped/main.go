//go:build linux && amd64

// Stepped runs a program whose clock a test can step, while all other programs keep the right time.
// The program is not modified: the kernel asks this process for the time.
//
//	stepped FILE PROGRAM [ARG]...
//
// FILE contains the seconds by which the clock is wrong, and may change at any time; without it the
// clock is right. FILE.ready exists once the program's clock can be stepped. Where the system does
// not allow that, the program runs with the usual clock.
//
//	stepped, becomes PROGRAM by exec            its child
//	  seccomp filter: clock_gettime(REALTIME) ──► listener: writes the time into the
//	  of the system is asked of the listener      program's memory
//	  stopped at exec ───────────────────────────► removes the vDSO, with which a
//	                                              program reads the clock by itself
//
// Programs that PROGRAM starts have a vDSO again, and so get the right time, unless they make the
// system call. The monotonic clock (CLOCK_MONOTONIC) is not changed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The thread that installs the filter and is traced must also execute the program and be the parent
// of the child. It must therefore be the process's first thread.
func init() { runtime.LockOSThread() }

const serving = "-serve"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: stepped FILE PROGRAM [ARG]...")
		os.Exit(64)
	}
	var err error
	if os.Args[1] == serving {
		err = serve(os.Args[2])
	} else {
		if err = attach(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "stepped: the clock cannot be stepped here:", err)
		}
		err = run(os.Args[2], os.Args[2:])
	}
	fmt.Fprintln(os.Stderr, "stepped:", err)
	os.Exit(1)
}

// run replaces this process by the program; it returns only an error.
func run(name string, args []string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}

// attach starts the child, and returns when the child has the listener and traces this thread.
func attach(file string) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	defer unix.Close(ends[0])
	defer theirs.Close()
	child := exec.CommandContext(context.Background(), "/proc/self/exe", serving, file)
	child.ExtraFiles = []*os.File{theirs}
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		return err
	}
	listener, err := listen()
	if err != nil {
		child.Process.Kill()
		return err
	}
	defer unix.Close(listener)
	if err := unix.Sendmsg(ends[0], []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	theirs.Close() // so that the read below ends if the child ends
	if n, err := unix.Read(ends[0], make([]byte, 1)); n != 1 || err != nil {
		return fmt.Errorf("the child did not start: %w", err)
	}
	return nil
}
