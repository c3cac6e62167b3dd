package unruly

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// StartResumeTimers starts timers that resume this process with SIGCONT whenever it is stopped, until it ends. A
// timer fires again only after its signal was delivered. A stop discards pending SIGCONT signals, whose timers
// then do not fire again, so there are many timers.
func StartResumeTimers() error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGCONT) // otherwise the process would ignore the signals
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

// StartResumers starts processes that continuously send SIGCONT to their process group until they are killed.
func StartResumers(n int) error {
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

// StartRenamer starts a process that appends more to a file and renames the file, back and forth between the names
// from and to, the given number of times or until it is killed. Each step runs in a new process, which sets timers
// that resume it, forks the next process, and ends.
func StartRenamer(from, to string, more []byte, times int) error {
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
	r := renamer{from: a, to: b, more: more, left: times}
	for i := range r.timers {
		r.timers[i].event.signal = int32(syscall.SIGCONT)
	}
	if child, errno := fork(); child != 0 || errno != 0 {
		if errno != 0 {
			return errno
		}
		return nil
	}
	r.run()
	return nil
}

// A renamer is the state that one process passes on to the next.
type renamer struct {
	from, to *byte
	more     []byte
	left     int
	timers   [4]timer
}

// run makes only raw system calls and changes only its stack, because the Go runtime does not work in a forked
// child, which has a single thread.
//
//go:norace
func (r renamer) run() {
	for ; r.left > 0; r.left-- {
		for i := range r.timers {
			r.timers[i].make()
			r.timers[i].start(100_000 << (2 * i))
		}
		write(r.from, r.more)
		at := -100 // AT_FDCWD
		syscall.RawSyscall6(syscall.SYS_RENAMEAT, uintptr(at), uintptr(unsafe.Pointer(r.from)), uintptr(at), uintptr(unsafe.Pointer(r.to)), 0, 0)
		r.from, r.to = r.to, r.from
		if child, errno := fork(); child != 0 && errno == 0 {
			break
		}
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

// write appends more to a file.
//
//go:norace
func write(file *byte, more []byte) {
	if len(more) == 0 {
		return
	}
	at := -100 // AT_FDCWD
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(file)), syscall.O_WRONLY|syscall.O_APPEND, 0, 0, 0)
	if errno == 0 {
		syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&more[0])), uintptr(len(more)))
		syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	}
}

// fork returns 0 in the child.
//
//go:norace
func fork() (child uintptr, errno syscall.Errno) {
	child, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return child, errno
}

// ForkRepeatedly forks children that exit at once, one after the other, until a fork fails. That is harmless by
// itself, but the kernel's work for each fork grows with the memory of this process.
func ForkRepeatedly() error {
	for {
		child, errno := forkAndExit()
		if errno != 0 {
			return errno
		}
		if _, err := syscall.Wait4(int(child), nil, 0, nil); err != nil && err != syscall.EINTR {
			return err
		}
	}
}

//go:norace
func forkAndExit() (child uintptr, errno syscall.Errno) {
	if child, errno = fork(); child == 0 && errno == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return child, errno
}

// A timer sends SIGCONT periodically.
type timer struct {
	event struct { // struct sigevent
		value          uint64
		signal, notify int32
		_              [48]byte
	}
	after [4]int64 // struct itimerspec: seconds and nanoseconds, of the interval and of the first expiry
	id    int32
}

//go:norace
func (t *timer) make() syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_TIMER_CREATE, 1, uintptr(unsafe.Pointer(&t.event)), uintptr(unsafe.Pointer(&t.id)))
	return errno
}

// start arms the timer to fire after some nanoseconds.
//
//go:norace
func (t *timer) start(after int64) {
	t.after[3] = after
	syscall.RawSyscall6(syscall.SYS_TIMER_SETTIME, uintptr(t.id), 0, uintptr(unsafe.Pointer(&t.after)), 0, 0, 0)
}
