package collective

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// The linear algorithms have one step, in which every rank sends n-1 messages with the data that the
// other ranks need. They pay off among few ranks on one machine, where a message costs less than the
// context switch that every further step needs.

// A fan holds the messages of one step.
type fan struct{ out, in []engine.Part }

var fans = sync.Pool{New: func() any { return new(fan) }}

// fanOut sends out(i) to every other rank i and receives in(i) from it.
func fanOut(t *Team, out, in func(rank int) []byte) error {
	f := fans.Get().(*fan)
	f.out, f.in = f.out[:0], f.in[:0]
	for k := 1; k < t.Size; k++ {
		dest, source := t.up(k), t.down(k)
		f.out = append(f.out, engine.Part{Rank: t.world(dest), Bytes: out(dest)})
		f.in = append(f.in, engine.Part{Rank: t.world(source), Bytes: in(source)})
	}
	if err := t.Engine.Exchange(t.Context, int32(t.call), f.out, f.in); err != nil {
		return t.cause(err) // some messages are still in progress, so f is not reused
	}
	for k, p := range f.in {
		if err := t.exact(p.Status, p.Err, p.Bytes, t.down(k+1)); err != nil {
			return err
		}
	}
	clear(f.out)
	clear(f.in)
	fans.Put(f)
	return nil
}

func nothing(int) []byte { return nil }

// linearBarrier tells all other ranks that this rank has arrived, and waits for them.
func linearBarrier(t *Team) error { return fanOut(t, nothing, nothing) }

func linearAllgather(t *Team, buf []byte, blocks Blocks) error {
	mine := blocks.of(buf, t.Rank)
	return fanOut(t, func(int) []byte { return mine }, func(i int) []byte { return blocks.of(buf, i) })
}

func linearAlltoall(t *Team, send []byte, out Blocks, recv []byte, in Blocks) error {
	copy(in.of(recv, t.Rank), out.of(send, t.Rank))
	return fanOut(t, func(i int) []byte { return out.of(send, i) }, func(i int) []byte { return in.of(recv, i) })
}
