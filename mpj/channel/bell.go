package channel

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Board is shared memory that holds the bells of all processes of a job on one peer. Each bell
// has a cell of cacheLine bytes.
type Board struct{ memory *memory }

// maxCells bounds the number of bells on a board.
const maxCells = 1 << 16

// MapBoard maps a board made by NewBoard. The caller still closes f.
func MapBoard(f *os.File) (*Board, error) {
	m, err := mapShared(f)
	if err != nil {
		return nil, fmt.Errorf("map board: %w", err)
	}
	if n := len(m.bytes) / cacheLine; n > maxCells {
		return nil, fmt.Errorf("map board: %d cells, at most %d are allowed", n, maxCells)
	}
	return &Board{m}, nil
}

// Bell returns the bell in the cell with the given number.
func (b *Board) Bell(cell int) (*Bell, error) {
	if b.memory == nil {
		return nil, fmt.Errorf("bell %d of a board: %w", cell, os.ErrClosed)
	}
	if n := len(b.memory.bytes) / cacheLine; cell < 0 || cell >= n {
		return nil, fmt.Errorf("bell %d of a board with %d bells", cell, n)
	}
	state := (*atomic.Uint32)(unsafe.Pointer(&b.memory.bytes[cell*cacheLine]))
	return &Bell{state, b.memory}, nil
}

// Close releases the board. Its bells stay usable; the memory is unmapped when the last bell is no
// longer used.
func (b *Board) Close() error {
	b.memory = nil
	return nil
}

// A Bell lets a process sleep until another process has work for it. Only one goroutine at a time
// may arm the bell and sleep; any goroutine may ring and disarm it. The order
//
//	sleeper   Arm    look once more    Sleep
//	others    publish    ring
//
// loses no wake-up: after a publication that the sleeper's last look has missed, the bell is armed
// and the ring wakes the sleeper.
type Bell struct {
	state  *atomic.Uint32 // shared with untrusted processes, so it may have any value
	memory *memory
}

// The states of a bell.
const (
	awake  = iota
	armed  // about to sleep: storing awake suffices to wake the process
	asleep // asleep in the kernel
)

// Arm announces that this process is about to sleep: from now on, ring has an effect.
func (b *Bell) Arm() { b.state.Store(armed) }

// Sleep blocks the goroutine and its thread while the bell is armed. It returns when the bell has
// been rung or disarmed, and may also return spuriously.
func (b *Bell) Sleep() {
	if b.state.CompareAndSwap(armed, asleep) {
		futexWait(b.state, asleep)
	}
	runtime.KeepAlive(b)
}

// Disarm announces that this process is awake, and wakes its sleeper.
func (b *Bell) Disarm() { b.ring() }

// ring wakes the process if it sleeps or is about to sleep. If the process is awake, ring costs one
// load and no system call.
func (b *Bell) ring() {
	if b.state.Load() != awake {
		b.wake()
	}
}

// wake is separate from ring so that the common case is inlined as a single load.
func (b *Bell) wake() {
	if b.state.Swap(awake) == asleep {
		futexWake(b.state)
	}
	runtime.KeepAlive(b)
}
