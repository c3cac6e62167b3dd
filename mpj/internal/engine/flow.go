package engine

import (
	"encoding/binary"
	"errors"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A replica keeps in memory the messages that its program has been sent and has not received. A
// flow bounds them. For the messages from one rank to another, each process of the first rank knows
// how many bytes it has sent. Each process of the second rank reports to all of them, from time to
// time, how many bytes its program has received:
//
//	0.0, 0.1: sent 5.0 MB          1.0: received 4.5 MB
//	    |  <-- Taken 4.5 MB --------|
//	    |  <-- Taken 1.0 MB ------------ 1.1: received 1.0 MB, slow
//
// A replica of the destination lacks the messages that were sent before a given one and that it has
// not reported as received. The send is done once some replica lacks less than near and each lacks
// less than far. So the fastest replica sets the pace, and senders wait for a slow one before it is
// far behind. A replica that has matched the very message counts as lacking nothing. So, whatever
// else waits, a send is done when all replicas have matched it, as a synchronous send would be.
//
// Short and long messages are counted separately. Without replicas too, a long message that waits
// for its receive does not keep short ones from being buffered. The counts of one process only
// grow. The counts of a rank's replicas agree when the replicas have done the same, except for
// messages that goroutines of a program send concurrently.

// The classes of messages.
const (
	short = iota
	long
	classes
)

// shortMost is the longest short message, in bytes: the longest that is sent eagerly when there are
// no replicas.
const shortMost = 1 << 20

// messageCost is the number of bytes that a message counts in addition to its payload. It is the
// same as without replicas, so that no fewer short messages are buffered.
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

// A flow is the state that one process keeps of the messages between it and another rank. It is a
// pure value.
type flow struct {
	sent     tally
	taken    []tally // by replica of the rank: the part of sent that it has received
	known    []bool  // by replica: it has reported, so taken counts
	received tally   // messages of the rank that this process's program has received
	reported tally   // the part of received that has been reported to the rank
}

// credits are the numbers of bytes that replicas may lack when a send is done.
type credits struct {
	near [classes]int // limit for the fastest replica; far is that for each
	far  int
	step int // most bytes that are received and not reported
}

// The credits of all jobs. The credit near, less a step, is more than eagerCredit for short
// messages. So a program that ends without replicas because its messages are buffered ends with
// replicas too. For long messages, near lets a sender copy one message while others are being
// transferred. A slow replica may be behind by farShare over all senders, or by farLeast for each.
var (
	near     = [classes]int{short: 4 << 20, long: 16 << 20}
	farShare = 256 << 20
	farLeast = 32 << 20
)

// creditsFor returns the credits in a job of n ranks.
func creditsFor(n int) credits {
	return credits{near: near, far: max(farLeast, farShare/max(1, n-1)), step: near[short] / 8}
}

// A heldSend is a send whose message has been handed to the protocol and that is not done.
type heldSend struct {
	request *Request
	name    messageID
	class   int
	before  uint64 // bytes of the class sent to the rank before it
	full    bool   // waits for the load to fall below flowLimit
	sync    bool   // synchronous: also waits for a match
	matched bool   // matched by some replica
	by      []bool // by replica: it has matched the message
	over    bool
}

// next returns the next send of a size, before it is counted.
func (f *flow) next(name messageID, size int) heldSend {
	class := classOf(size)
	return heldSend{name: name, class: class, before: f.sent[class]}
}

// done reports whether the live replicas of h's destination lack so little that h is done. A
// replica that has not reported yet does not count.
func (f *flow) done(h *heldSend, c *credits, live func(replica int) bool) bool {
	quick, none := h.matched, true
	for k := range f.taken {
		if !f.known[k] || !live(k) {
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

// report records that a replica has matched h.
func (h *heldSend) report(replica int) {
	h.matched = true
	for len(h.by) <= replica {
		h.by = append(h.by, false)
	}
	h.by[replica] = true
}

// grow makes room for a number of replicas. New ones replay their rank's message log first, and do
// not count before their first report.
func (f *flow) grow(replicas int) {
	for len(f.taken) < replicas {
		f.taken, f.known = append(f.taken, tally{}), append(f.known, false)
	}
}

// record records a replica's report of received bytes. An older report has no effect.
func (f *flow) record(replica int, t tally) {
	f.known[replica] = true
	for class := range t {
		f.taken[replica][class] = max(f.taken[replica][class], t[class])
	}
}

// due reports whether a report of received bytes is due to the rank.
func (f *flow) due(c *credits) bool { return f.received.sum()-f.reported.sum() >= uint64(c.step) }

// tallySize is the length of a tally on the wire, in bytes.
const tallySize = 8 * classes

var errTally = errors.New("malformed report of received bytes")

func (t tally) append(b []byte) []byte {
	for _, n := range t {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// decodeTally decodes the output of append and rejects everything else. It also rejects counts that
// no program can reach, which would overflow.
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

// readTally decodes the output of append from the start of b.
func readTally(b []byte) (t tally) {
	for class := range t {
		t[class] = binary.LittleEndian.Uint64(b[8*class:])
	}
	return t
}

// takenFrame returns the frame that reports to a process of another rank how many bytes this one
// has received from it.
func takenFrame(rank int, t tally) frame.Frame {
	return frame.Frame{
		Header:  frame.Header{Kind: frame.Taken, Rank: uint32(rank), Size: tallySize},
		Payload: t.append(make([]byte, 0, tallySize)),
	}
}
