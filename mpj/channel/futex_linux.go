package channel

import (
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The operations of futex(2), not private: the words are shared by processes.
const (
	opWait = 0
	opWake = 1
)

// futexWait blocks the thread while word has a value, until it is woken. It
// also returns for no reason. The runtime gives the processor to other
// goroutines meanwhile.
func futexWait(word *atomic.Uint32, value uint32) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWait, uintptr(value), 0, 0, 0)
}

// futexWake wakes all who wait at word. It does not block.
func futexWake(word *atomic.Uint32) {
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), opWake, math.MaxInt32, 0, 0, 0)
}
