package engine

import (
	"encoding/binary"
	"errors"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// What a program has been sent and has not received lies in its memory, at each of
// its replicas. A flow bounds that. Of the messages from one rank to another each
// process of the first knows, in bytes, how many it has sent, and each of the second
// says to all of them, now and then, how many its program has received:
//
//	0.0, 0.1: sent 5.0 MB          1.0: received 4.5 MB
//	    |  <-- Taken 4.5 MB --------|
//	    |  <-- Taken 1.0 MB ------------ 1.1: received 1.0 MB, slow
//
// What was sent before a message and is not received, as far as is known, is what a
// replica of its destination lacks. The send is done once some replica lacks less than
// near, so that the quickest of them sets the pace, and each less than far, so
// that a slow one is waited for before it is far behind. A replica that has received the
// very message counts as one that lacks nothing: whatever else waits, a send is done
// when all replicas have matched it, as a synchronous one would be.
//
// Short messages and long ones are counted apart, since without replicas too a long
// message that waits for its receive does not keep short ones from being buffered.
// Counts of one process are for ever; those of replicas of one rank agree when they have
// done the same, but for what goroutines of a program send at once.

// The classes of messages.
const (
	short = iota
	long
	classes
)

// shortMost is the longest short message, in bytes: the longest that goes without
// being asked for when there are no replicas.
const shortMost = 1 << 20

// messageCost is what a message counts apart from its payload, in bytes: as much as
// without replicas, so that no fewer short ones are buffered.
const messageCost = frame.HeaderSize

// A tally counts the bytes of messages, by class, each with messageCost.
type tally [classes]uint64

func classOf(size int) int {
	if size <= shortMost {
		return short
	}
	return long
}

func (t *tally) add(size int) { t[classOf(size)] += uint64(size) + messageCost }

func (t *tally) sum() uint64 { return t[short] + t[long] }

// A flow is what one process knows of the messages between it and another rank. It is
// a pure value.
type flow struct {
	sent  tally
	taken []tally // by replica of the rank: so much of that it has received
	heard []bool  // by replica: taken counts
	took  tally   // of the rank's messages this process's program has received so much
	told  tally   // what the rank knows of that
}

// Credits say how many bytes replicas may lack when a send is done.
type credits struct {
	near [classes]int // the quickest; far each
	far  int
	step int // bytes that are received and not told of, at most
}

// The credits of all jobs. Near, less a step, is more than eagerCredit for short
// messages: a program that ends without replicas because so much is buffered ends with
// replicas. For long ones it is what lets a sender copy one while others are on their
// way. A slow replica may be behind by farShare over all senders, or by farLeast for each.
var (
	near     = [classes]int{short: 4 << 20, long: 16 << 20}
	farShare = 256 << 20
	farLeast = 32 << 20
)

// creditsFor returns the credits in a job of n ranks.
func creditsFor(n int) credits {
	return credits{near: near, far: max(farLeast, farShare/max(1, n-1)), step: near[short] / 8}
}

// A heldSend is a send whose message is on its way and that is not done.
type heldSend struct {
	request *Request
	name    letter
	class   int
	before  uint64 // bytes of the class that were sent to the rank before it
	full    bool   // waits for the load to fall below flowLimit
	sync    bool   // waits for a match, too
	matched bool   // by some replica
	by      []bool // by replica: it has matched
	over    bool
}

// next returns the next send of a size, before it is counted.
func (f *flow) next(name letter, size int) heldSend {
	class := classOf(size)
	return heldSend{name: name, class: class, before: f.sent[class]}
}

// done reports whether the replicas of its destination that are live lack so little that
// h is. A replica that has not said yet what it has received does not count.
func (f *flow) done(h *heldSend, c *credits, live func(replica int) bool) bool {
	quick, none := h.matched, true
	for k := range f.taken {
		if !f.heard[k] || !live(k) {
			continue
		}
		none = false
		if k < len(h.by) && h.by[k] {
			continue
		}
		lacks := int64(h.before - f.taken[k][h.class])
		if lacks >= int64(c.far) {
			return false
		}
		quick = quick || !h.sync && lacks < int64(c.near[h.class])
	}
	return quick || none && !h.sync
}

// report takes note that a replica has matched h.
func (h *heldSend) report(replica int) {
	h.matched = true
	for len(h.by) <= replica {
		h.by = append(h.by, false)
	}
	h.by[replica] = true
}

// grow makes room for so many replicas. New ones do not count before they have said
// what they have received: they relive it first.
func (f *flow) grow(replicas int) {
	for len(f.taken) < replicas {
		f.taken, f.heard = append(f.taken, tally{}), append(f.heard, false)
	}
}

// hear takes what a replica says that it has received. Something older says nothing.
func (f *flow) hear(replica int, t tally) {
	f.heard[replica] = true
	for class := range t {
		f.taken[replica][class] = max(f.taken[replica][class], t[class])
	}
}

// due reports whether the rank is to know what was received from it.
func (f *flow) due(c *credits) bool { return f.took.sum()-f.told.sum() >= uint64(c.step) }

// tallySize is the length of a tally on the wire, in bytes.
const tallySize = 8 * classes

var errTally = errors.New("not a count of bytes received")

func (t tally) append(b []byte) []byte {
	for _, n := range t {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// decodeTally reads what append writes, and nothing else. A count of more than any
// program can receive would overflow.
func decodeTally(b []byte) (t tally, err error) {
	if len(b) != tallySize {
		return t, errTally
	}
	t = readTally(b)
	if t[short] > 1<<62 || t[long] > 1<<62 {
		return tally{}, errTally
	}
	return t, nil
}

// readTally reads what append writes.
func readTally(b []byte) (t tally) {
	for class := range t {
		t[class] = binary.LittleEndian.Uint64(b[8*class:])
	}
	return t
}

// takenFrame says to a process of another rank what this one has received from it.
func takenFrame(rank int, t tally) frame.Frame {
	return frame.Frame{
		Header:  frame.Header{Kind: frame.Taken, Rank: uint32(rank), Size: tallySize},
		Payload: t.append(make([]byte, 0, tallySize)),
	}
}
