package wasm

import (
	"errors"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// pageSize is the page size of WebAssembly, in bytes; maxPages is the number of pages that a module can
// address.
const (
	pageSize = 64 << 10
	maxPages = 1 << 16
)

// runnerMemory is the memory, in bytes, that a runner needs in addition to its module's memory and code:
// Go's runtime, the engine, messages in transit. See TestWasmStaysSmall of e2e.
const runnerMemory = 48 << 20

// codeFactor is the ratio of the memory for a module and its compiled code, in any engine, to the module's size.
// It allows for two copies of both. The code is three to four times as large as the module.
const codeFactor = 10

// divide divides the memory of a slot between a module of the given size and its runner, all in bytes. If
// memory is 0, there is no limit. The module gets the memory that the runner does not need, and at least
// half. The result is the same in all engines and on all processors.
func divide(memory, module uint64) (pages uint32, runner int64) {
	if memory == 0 {
		return maxPages, math.MaxInt64
	}
	own := min(runnerMemory+codeFactor*module, memory/2)
	return uint32(max(1, min((memory-own)/pageSize, maxPages))), int64(own)
}

// A linear is the memory of a module. It reserves addresses for the maximum size, of which the module has
// the first part, and never moves. A linear is not allocated by Go, which would count the maximum as used
// from the beginning, and would collect no garbage before the heap had grown by the same size again.
type linear struct {
	all  []byte
	used uint64
}

// newLinear reserves addresses for most bytes, or for as many as the system provides.
func newLinear(_, most uint64) experimental.LinearMemory {
	for n := min(most, math.MaxInt); n >= pageSize; n /= 2 {
		if all, err := unix.Mmap(-1, 0, int(n), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
			return &linear{all: all}
		}
	}
	return &linear{}
}

// Reallocate implements experimental.LinearMemory. If the system refuses memory, the module's request
// fails. If it refuses the initial memory, the runner exits.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.all)) || size > 0 && unix.Mprotect(l.all[:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		if l.used == 0 {
			os.Exit(tell(exitTrap, errors.New("not enough memory for the module's initial memory")))
		}
		return nil
	}
	l.used = size
	return l.all[:size]
}

// Free implements experimental.LinearMemory. It does nothing, since the process ends soon. The engine calls
// it as soon as the module ends, while messages may still be received into the memory or sent from it.
func (*linear) Free() {}
