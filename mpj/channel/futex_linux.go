package channel

import (
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Operations of futex(2). They are not the private variants, because several processes share the
// futex words.
const (
	opWait = 0
	opWake = 1
)

// futexWait blocks the thread while word has the given value, until it is woken. It may also return
// spuriously. Meanwhile the runtime gives the processor to other goroutines.
func futexWait(word *atomic.Uint32, value uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(value), 0, 0, 0)
}

// futexWake wakes all waiters of word. It does not block.
func futexWake(word *atomic.Uint32) {
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, math.MaxInt32, 0, 0, 0)
}
