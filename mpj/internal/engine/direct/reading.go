package direct

import (
	"encoding/binary"
	"errors"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// Within a machine, an announcement contains the address of the payload. The receiver may read the
// payload from that address instead of requesting it:
//
//	Announce, address ->  read, when a receive has matched  <- Clear, not needed
//
// Reading takes one copy where a ring takes two, and the sender has nothing to do meanwhile. But the
// two copies of a ring run in parallel if a processor is free for each. They also stay within the
// second-level caches, unlike the system's copy of a long payload. So the engine reads only in
// exchanges, in which both processors are busy anyway. Times on two processors in µs, with the ring
// and with reading:
//
//	                         128 KiB     256 KiB       1 MiB      4 MiB
//	2 ranks  latency                     28    51   110   197  586  1256
//	         alltoall        36   20     80    50   528   432
//	         allreduce       34   34    114    76   418   350 2618  3327
//	         both ways                  115   127   386   552
//	4 ranks  alltoall       338  334    674   501  3500  4319
//	         allreduce      153  148    344   291  1711  1462
//	         bcast, always read         119   112   492   547
//
// (e2e/bench -only 'mpj shm n=(2|4)/(latency|bidirectional|alltoall|allreduce|bcast)'; with 4
// ranks, runs differ by a fifth. An allreduce sends parts of its length.)

// readLimit is the longest payload that is read, in bytes.
const readLimit = channel.ReadMost / 2

// attachAddress adds the address of the payload to an announcement, if the receiver may read this
// process's memory. The address stays in r, on the heap, until the receiver is done.
func (o *outflow) attachAddress(f *frame.Frame, r *engine.Request) {
	if n := len(r.Body); o.Memory() != nil && n > 0 && n <= readLimit {
		binary.LittleEndian.PutUint64(r.Address[:], o.Memory().Address(r.Body))
		f.Payload, f.Size = r.Address[:], engine.AddressSize
	}
}

// reads reports whether this process should read m from the memory of its sender. It should if that
// memory is readable and this process has other pending payloads, as in an exchange.
func (link *inflow) reads(m match.Message) bool {
	return m.Address != 0 && m.Size <= readLimit && link.direct.loop.Bodies() > 0 && link.memory != nil && link.memory.CanRead()
}

// read reads m into the buffer of r, which has matched m. It takes at most about 50 µs.
func (link *inflow) read(r *engine.Request, m match.Message) {
	d := link.direct
	switch err := link.memory.ReadMemory(m.Address, r.Buf[:m.Size]); {
	case errors.Is(err, channel.ErrUnreadable):
		d.askFor(link, r, m.Seq) // has no effect if the sender has ended; a view will follow
	case err != nil:
		d.loop.Fail(engine.Violation(link.from, err))
	default:
		d.answer(link.from, m.Seq, notNeeded)
		r.Finish()
	}
}
