package channel

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Board is the shared memory with the bells of all processes of a job on one
// peer: a cell of cacheLine bytes for each.
type Board struct{ memory *memory }

// maxCells bounds the bells of a board.
const maxCells = 1 << 16

// MapBoard maps a board that NewBoard made; the caller still closes f.
func MapBoard(f *os.File) (*Board, error) {
	m, err := mapShared(f)
	if err != nil {
		return nil, fmt.Errorf("map board: %w", err)
	}
	if n := len(m.bytes) / cacheLine; n > maxCells {
		return nil, fmt.Errorf("map board: %d cells, at most %d are taken", n, maxCells)
	}
	return &Board{m}, nil
}

// Bell returns the bell of a cell.
func (b *Board) Bell(cell int) (*Bell, error) {
	if b.memory == nil {
		return nil, fmt.Errorf("bell %d of a board: %w", cell, os.ErrClosed)
	}
	if n := len(b.memory.bytes) / cacheLine; cell < 0 || cell >= n {
		return nil, fmt.Errorf("bell %d of a board that has %d", cell, n)
	}
	state := (*atomic.Uint32)(unsafe.Pointer(&b.memory.bytes[cell*cacheLine]))
	return &Bell{state, b.memory}, nil
}

// Close lets go of the board. Its bells go on; the memory is unmapped after
// the last of them is out of use.
func (b *Board) Close() error {
	b.memory = nil
	return nil
}

// A Bell is where one process sleeps until there is something for it. One
// goroutine at a time may arm it and sleep; all may ring and disarm. The order
//
//	sleeper   Arm    look once more    Sleep
//	others    publish    Ring
//
// loses no wake-up: who publishes after the last look rings an armed bell.
type Bell struct {
	state  *atomic.Uint32 // shared with strangers: any value may turn up
	memory *memory
}

// The states of a bell.
const (
	awake  = iota
	armed  // its process is about to sleep: a word is enough
	asleep // in the kernel
)

// Arm says that this process is about to sleep: from now on Ring has effect.
func (b *Bell) Arm() { b.state.Store(armed) }

// Sleep blocks the goroutine and its thread while the bell is armed. It
// returns when the bell has been rung or disarmed, and sometimes without.
func (b *Bell) Sleep() {
	if b.state.CompareAndSwap(armed, asleep) {
		futexWait(b.state, asleep)
	}
	runtime.KeepAlive(b)
}

// Disarm says that this process is awake, and wakes its sleeper.
func (b *Bell) Disarm() { b.Ring() }

// Ring wakes the process if it sleeps or is about to. To one that is awake it
// costs a load, and no system call.
func (b *Bell) Ring() {
	if b.state.Load() != awake {
		b.wake()
	}
}

// wake is apart from Ring so that the usual case compiles to that load.
func (b *Bell) wake() {
	if b.state.Swap(awake) == asleep {
		futexWake(b.state)
	}
	runtime.KeepAlive(b)
}
