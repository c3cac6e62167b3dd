//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// markAt is the address of the mark in the memory of each marked process. A mark consists of a word
// and a number unique to the process.
const (
	markAt   = 1 << 30
	markWord = "p2pmpi-mark-"
	markLen  = len(markWord) + 16
)

// mark places the mark of this process.
func mark() (own []byte, err error) {
	at, err := unix.MmapPtr(-1, 0, unsafe.Add(nil, markAt), 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		return nil, fmt.Errorf("map memory: %w", err)
	}
	if uintptr(at) != markAt {
		return nil, errors.New("mapped elsewhere")
	}
	own = unsafe.Slice((*byte)(at), markLen)
	copy(own, markWord+rand.Text())
	return own, nil
}

// marked is the target of a spy.
func marked(*mpj.World) error {
	if _, err := mark(); err != nil {
		return err
	}
	return stay("marked")
}

// spy looks for the marks of all other processes on the machine: of the ranks of its own job, which
// have marks too, and of other jobs.
func spy(world *mpj.World) error {
	own, err := mark()
	if err != nil {
		return err
	}
	if err := mpj.Barrier(world.Comm); err != nil {
		return err
	}
	// If a method does not find the process's own mark, its failure proves nothing.
	if got, err := readByFile(os.Getpid()); !errors.Is(err, fs.ErrNotExist) && !bytes.Equal(got, own) {
		return fmt.Errorf("read its own memory: %q, %w", got, err)
	}
	report("read others' memory by a call", func() (string, error) { return seekMark(own, numbers(), readByCall) })
	report("read others' memory by a file", func() (string, error) { return seekMark(own, seen(), readByFile) })
	report("trace others", func() (string, error) { return seize(numbers()) })
	if err := mpj.Barrier(world.Comm); err != nil { // the other ranks look for this rank's mark, too
		return err
	}
	return world.Finalize()
}

// numbers yields all process IDs that may exist.
func numbers() iter.Seq[int] {
	most := 1 << 22
	if text, err := os.ReadFile("/proc/sys/kernel/pid_max"); err == nil {
		fmt.Sscan(string(text), &most)
	}
	return func(yield func(int) bool) {
		for pid := 1; pid <= most && yield(pid); pid++ {
		}
	}
}

// seen yields the IDs of the processes that this process sees.
func seen() iter.Seq[int] {
	return func(yield func(int) bool) {
		folders, _ := filepath.Glob("/proc/[0-9]*")
		for _, f := range folders {
			if pid, err := strconv.Atoi(filepath.Base(f)); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// seekMark looks for marks in processes, until it finds one that is not its own.
func seekMark(own []byte, pids iter.Seq[int], look func(pid int) ([]byte, error)) (string, error) {
	if _, err := look(os.Getpid()); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return "", fmt.Errorf("cannot even read its own memory: %w", err)
	}
	for pid := range pids {
		if got, err := look(pid); err == nil && bytes.HasPrefix(got, []byte(markWord)) && !bytes.Equal(got, own) {
			return fmt.Sprintf("%q of process %d", got, pid), nil
		}
	}
	return "", errNothing
}

func readByCall(pid int) ([]byte, error) {
	got := make([]byte, markLen)
	iov := []unix.Iovec{{Base: &got[0]}}
	iov[0].SetLen(len(got))
	_, err := unix.ProcessVMReadv(pid, iov, []unix.RemoteIovec{{Base: markAt, Len: len(got)}}, 0)
	return got, err
}

func readByFile(pid int) ([]byte, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "mem"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	got := make([]byte, markLen)
	_, err = f.ReadAt(got, markAt)
	return got, err
}

// seize attaches to any process, until this process ends.
func seize(pids iter.Seq[int]) (string, error) {
	const seize = 0x4206
	if err := raw(unix.SYS_PTRACE, seize, 1<<30, 0, 0)(); !errors.Is(err, unix.ESRCH) {
		return "", fmt.Errorf("the call fails even for a process that does not exist: %w", err)
	}
	why := errNothing
	for pid := range pids {
		switch err := raw(unix.SYS_PTRACE, seize, uintptr(pid), 0, 0)(); {
		case err == nil:
			return fmt.Sprint("process ", pid), nil
		case !errors.Is(err, unix.ESRCH):
			why = err
		}
	}
	return "", why
}
