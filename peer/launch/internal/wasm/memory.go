package wasm

import (
	"errors"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// pageSize is that of WebAssembly, in bytes; maxPages is how many a module can address.
const (
	pageSize = 64 << 10
	maxPages = 1 << 16
)

// runnerMemory is what a runner needs beside its module's memory and code, in bytes: Go's
// runtime, the engine, what is on its way. See TestWasmStaysSmall of e2e.
const runnerMemory = 48 << 20

// codeFactor times a module's size is what it and the code that it was compiled to take, in each
// engine, as long as both are there twice: that code has three to four times its size.
const codeFactor = 10

// divide says what a module of a size in bytes may have of the memory of its slot, none meaning no
// limit: what the runner itself leaves, but half at least. It is the same in all engines, on all
// processors.
func divide(memory, module uint64) (pages uint32, runner int64) {
	if memory == 0 {
		return maxPages, math.MaxInt64
	}
	own := min(runnerMemory+codeFactor*module, memory/2)
	return uint32(max(1, min((memory-own)/pageSize, maxPages))), int64(own)
}

// A linear is the memory of a module: addresses for all that it may ever have, of which
// it has the first part. It never moves, and it is none of Go's: there, what a module may
// have would count as used from the beginning, and nothing be collected before as much
// again was.
type linear struct {
	all  []byte
	used uint64
}

// newLinear reserves addresses for most bytes, or for as many as there are.
func newLinear(_, most uint64) experimental.LinearMemory {
	for n := min(most, math.MaxInt); n >= pageSize; n /= 2 {
		if all, err := unix.Mmap(-1, 0, int(n), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON); err == nil {
			return &linear{all: all}
		}
	}
	return &linear{}
}

// Reallocate implements experimental.LinearMemory. What the system refuses is refused to
// the module, which cannot begin without its first part.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.all)) || size > 0 && unix.Mprotect(l.all[:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		if l.used == 0 {
			os.Exit(tell(exitTrap, errors.New("there is no memory for what the module begins with")))
		}
		return nil
	}
	l.used = size
	return l.all[:size]
}

// Free implements experimental.LinearMemory: it leaves the memory to the end of the process, which
// is near. The engine calls it as soon as the module ends, while messages may still come into
// buffers there, and go out of them.
func (*linear) Free() {}
