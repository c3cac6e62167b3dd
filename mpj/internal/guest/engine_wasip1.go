package guest

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// An Engine is the engine of this module's process, which runs in the host.
type Engine struct {
	host   host
	ctx    context.Context // ends with the engine
	cancel context.CancelFunc
	status status // for calls of a module with one goroutine

	mu       sync.Mutex
	underWay map[*Request]struct{} // requests whose buffers the host uses; the program may have dropped them

	running    sync.WaitGroup // goroutines started by Go
	replicated bool
	time       float64 // last result of Wtime
}

// Info is the description of the job for a process.
type Info struct {
	Self   view.Process
	Ranks  int
	Places [][2]int // machine and cluster of each rank; or nil
}

// info is an Info in the host's format.
type info struct {
	rank, replica, ranks uint32
	replicated           uint32
	places, placesSize   uint32
}

// Join joins the job that this module was started for.
func Join(ctx context.Context) (*Engine, Info, error) {
	e := &Engine{
		host:     host{parent: ctx, shared: ctx.Done() != nil, waiting: make(map[uint32]*waiting)},
		underWay: make(map[*Request]struct{}),
	}
	var i info
	code, text := e.host.call(func(later uint32) int32 { return hostJoin(unsafe.Pointer(&i), later) })
	if err := e.host.failed(code, text); err != nil {
		return nil, Info{}, err
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	context.AfterFunc(ctx, hostFail)
	e.replicated = i.replicated != 0
	out := Info{Self: view.Process{Rank: int(i.rank), Replica: int(i.replica)}, Ranks: int(i.ranks)}
	for b := taken(i.places, i.placesSize); len(b) >= 8; b = b[8:] {
		out.Places = append(out.Places, [2]int{int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))})
	}
	return e, out, nil
}

// taken returns the contents that the host keeps for this module under a handle.
func taken(bytes, size uint32) []byte {
	b := make([]byte, size)
	if bytes != 0 {
		hostTake(bytes, address(b), size)
	}
	return b
}

// Context returns a context that ends when the engine stops.
func (e *Engine) Context() context.Context { return e.ctx }

// Replicated reports whether this process must agree with replicas.
func (e *Engine) Replicated() bool { return e.replicated }

// Close stops the engine and returns when all its goroutines have ended.
func (e *Engine) Close() {
	e.cancel()
	hostClose()
	e.running.Wait()
}

// Go runs f in a goroutine that Close waits for.
func (e *Engine) Go(f func()) { e.running.Go(f) }

// Finalize reports that this process is done.
func (e *Engine) Finalize() error {
	code, text := e.host.call(hostFinalize)
	return e.host.failed(code, text)
}

// Abort ends the whole job. It does not return.
func (e *Engine) Abort(code int, reason string) {
	b := []byte(reason)
	hostAbort(int32(code), address(b), uint32(len(b)))
}

// Flush waits until every message of this process has reached its destination, as far as the engine
// requires.
func (e *Engine) Flush() error {
	code, text := e.host.call(hostFlush)
	return e.host.failed(code, text)
}

// Forget drops the engine's state of a context.
func (e *Engine) Forget(context uint32) { hostForget(context) }

// Abandon gives up a context in which this process receives nothing any more.
func (e *Engine) Abandon(context uint32) { hostAbandon(context) }

// Unmatched returns the messages that have arrived but were not received.
func (e *Engine) Unmatched() []engineapi.Unmatched {
	var bytes, size uint32
	hostUnmatched(unsafe.Pointer(&bytes), unsafe.Pointer(&size))
	var all []engineapi.Unmatched
	const each = 16
	for b := taken(bytes, size); len(b) >= each; b = b[each:] {
		le := binary.LittleEndian
		all = append(all, engineapi.Unmatched{Context: le.Uint32(b), Status: engineapi.Status{
			Source: int(int32(le.Uint32(b[4:]))), Tag: int32(le.Uint32(b[8:])), Size: int(le.Uint32(b[12:])),
		}})
	}
	return all
}

// Wtime returns the seconds since an arbitrary moment in the past, the same at all replicas.
func (e *Engine) Wtime() float64 {
	var bits uint64
	if code, _ := e.host.call(func(later uint32) int32 { return hostWtime(unsafe.Pointer(&bits), later) }); code == codeOK {
		e.time = math.Float64frombits(bits)
	}
	return e.time
}

// RandomSeed returns a random number, the same at all replicas. It returns 0 after the engine has
// stopped.
func (e *Engine) RandomSeed() (seed uint64) {
	e.host.call(func(later uint32) int32 { return hostRandomSeed(unsafe.Pointer(&seed), later) })
	return seed
}

// Choose returns a number that depends on timing, the same at all replicas. It may ignore the
// result of choose at this replica.
func (e *Engine) Choose(context uint32, choose func() uint64) (uint64, error) {
	mine, out := choose(), uint64(0)
	if !e.replicated {
		return mine, nil
	}
	code, text := e.host.call(func(later uint32) int32 {
		return hostChoose(context, int64(mine), unsafe.Pointer(&out), later)
	})
	return out, e.host.failed(code, text)
}
