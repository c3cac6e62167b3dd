package unruly

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Wake has timers wake this process, whoever stops it, until it ends. Each does so again when its signal was
// taken; they are many, for those whose signals are pending when it is told to stop do so no more.
func Wake() error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGCONT) // or nobody would take them
	var timers [64]timer
	for i := range timers {
		timers[i].event.signal = int32(syscall.SIGCONT)
		if errno := timers[i].make(); errno != 0 {
			return errno
		}
		timers[i].after[1] = int64(i+1) * 300_000
	}
	go func() { // until this process ends
		for ; ; time.Sleep(time.Millisecond) {
			for i := range timers {
				timers[i].start(int64(i+1) * 300_000)
			}
		}
	}()
	return nil
}

// Rouse starts processes that wake all of their process group all the time, until they are killed.
func Rouse(n int) error {
	for range n {
		switch child, errno := fork(); {
		case errno != 0:
			return errno
		case child == 0:
			for {
				syscall.RawSyscall(syscall.SYS_KILL, 0, uintptr(syscall.SIGCONT), 0)
			}
		}
	}
	return nil
}

// Hop starts a process that moves a file to and fro between two names, until it is killed. In truth it is
// ever another one: each moves it, has timers wake itself, starts the next, and ends.
func Hop(from, to string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	b, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	var t [4]timer
	for i := range t {
		t[i].event.signal = int32(syscall.SIGCONT)
	}
	if child, errno := fork(); child != 0 || errno != 0 {
		if errno != 0 {
			return errno
		}
		return nil
	}
	hop(a, b, &t)
	return nil
}

// hop makes raw calls only: there is but one thread in a child.
//
//go:norace
func hop(a, b *byte, t *[4]timer) {
	for {
		for i := range t {
			t[i].make()
			t[i].start(100_000 << (2 * i))
		}
		at := -100 // AT_FDCWD
		syscall.RawSyscall6(syscall.SYS_RENAMEAT, uintptr(at), uintptr(unsafe.Pointer(a)), uintptr(at), uintptr(unsafe.Pointer(b)), 0, 0)
		a, b = b, a
		if child, errno := fork(); child != 0 && errno == 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}

// fork returns 0 in the child.
//
//go:norace
func fork() (child uintptr, errno syscall.Errno) {
	child, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return child, errno
}

// A timer sends SIGCONT.
type timer struct {
	event struct { // struct sigevent
		value          uint64
		signal, notify int32
		_              [48]byte
	}
	after [4]int64 // struct itimerspec: seconds and nanoseconds, again and at first
	id    int32
}

//go:norace
func (t *timer) make() syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_TIMER_CREATE, 1, uintptr(unsafe.Pointer(&t.event)), uintptr(unsafe.Pointer(&t.id)))
	return errno
}

// start has it send its signal after some nanoseconds.
//
//go:norace
func (t *timer) start(after int64) {
	t.after[3] = after
	syscall.RawSyscall6(syscall.SYS_TIMER_SETTIME, uintptr(t.id), 0, uintptr(unsafe.Pointer(&t.after)), 0, 0, 0)
}
