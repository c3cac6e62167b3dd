package hostcall

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A Fault is an error in a call that no correct module makes. It ends the module.
type Fault string

func (f Fault) Error() string { return string(f) }

func faultf(format string, args ...any) Fault { return Fault(fmt.Sprintf(format, args...)) }

// arguments holds the arguments of one call in the form of WebAssembly engines, with one word for
// each.
type arguments []uint64

func (a arguments) u(i int) uint32 { return uint32(a[i]) }
func (a arguments) i(i int) int32  { return int32(a[i]) }

// later returns the last argument: the ticket of a call in the background, or 0.
func (a arguments) later() uint32 { return a.u(len(a) - 1) }

// context returns argument i, a context that a program may use. Context 0 is reserved for the engine.
func (a arguments) context(i int) uint32 {
	if a.u(i) == 0 {
		panic(Fault("context 0 is reserved"))
	}
	return a.u(i)
}

// mode returns argument i, a send mode.
func (a arguments) mode(i int) engine.Mode {
	if a.u(i) > uint32(engine.Ready) {
		panic(faultf("unknown send mode %d", a.u(i)))
	}
	return engine.Mode(a.u(i))
}

// memory is the module's memory. It returns size bytes at an address, and false if the range does not
// exist.
type memory func(at, size uint32) ([]byte, bool)

// bytes returns size bytes of the module's memory at an address. It panics with a Fault if they do
// not exist.
func (m memory) bytes(at, size uint32) []byte {
	b, ok := m(at, size)
	if !ok {
		panic(faultf("%d bytes at %#x are outside the module's memory", size, at))
	}
	return b[:size:size]
}

// words returns n words of the module's memory at an address.
func (m memory) words(at uint32, n int) words { return m.array(at, uint32(n), 4) }

// array returns the memory of n elements, each of the given size in bytes.
func (m memory) array(at, n uint32, each uint64) []byte {
	if size := uint64(n) * each; size < 1<<32 {
		return m.bytes(at, uint32(size))
	}
	panic(faultf("array of %d elements is too long", n))
}

// words is an array of 32-bit numbers in the module's memory, or a structure of such numbers.
type words []byte

func (w words) get(i int) uint32    { return binary.LittleEndian.Uint32(w[4*i:]) }
func (w words) set(i int, v uint32) { binary.LittleEndian.PutUint32(w[4*i:], v) }

func (w words) get64() uint64  { return binary.LittleEndian.Uint64(w) }
func (w words) set64(v uint64) { binary.LittleEndian.PutUint64(w, v) }

func (w words) setBool(v bool) {
	w.set(0, 0)
	if v {
		w.set(0, 1)
	}
}

// statusWords is the size of a status, in words.
const statusWords = 4

func (w words) setStatus(s engine.Status) {
	w.set(0, uint32(s.Source))
	w.set(1, uint32(s.Tag))
	w.set(2, uint32(s.Size))
	w[12:].setBool(s.Cancelled)
}
