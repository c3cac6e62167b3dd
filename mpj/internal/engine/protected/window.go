package protected

import (
	"encoding/binary"
	"errors"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A replica keeps in memory the messages to its program that the program has not received. A receive
// window bounds these messages. For the messages from one rank to another, each process of the first rank
// counts the bytes that it has sent. Each process of the second rank occasionally reports to all of
// them the number of bytes that its program has received:
//
//	0.0, 0.1: sent 5.0 MB          1.0: received 4.5 MB
//	    |  <-- Taken 4.5 MB --------|
//	    |  <-- Taken 1.0 MB ------------ 1.1: received 1.0 MB, slow
//
// For a given send, a replica of the destination lacks the messages that were sent earlier and that
// it has not reported as received. The send ends once one replica lacks less than near and each
// replica lacks less than far. So the fastest replica sets the pace, and senders wait for a slow
// replica before it is far behind. A replica that has matched the message of the send counts as
// lacking nothing. So a send always ends when all replicas have matched its message, as a
// synchronous send would.
//
// Short and long messages are counted separately, so that a long message that waits for its receive
// does not keep short messages from being buffered; the same holds without replicas. The counts of
// one process only grow. Replicas of a rank that have made the same calls have the same counts,
// except for messages that goroutines of a program send concurrently.

// The classes of messages.
const (
	short = iota
	long
	classes
)

// shortMost is the length in bytes of the longest short message. Longer messages are not sent
// eagerly without replicas.
const shortMost = 1 << 20

// messageCost is the number of bytes that a message counts in addition to its payload. It is the
// same as without replicas, so that replicas buffer at least as many short messages.
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

// A window is the state of the messages between one process and another rank, in both directions. It
// is a pure value.
type window struct {
	sent     tally
	taken    []tally // by replica of the rank: the part of sent that the replica has received
	known    []bool  // by replica: whether it has reported, so that taken counts
	received tally   // messages of the rank that this process's program has received
	reported tally   // the part of received that has been reported to the rank
}

// windowLimits are the numbers of bytes that replicas may lack when a send is done.
type windowLimits struct {
	near [classes]int // limit for the fastest replica; far is the limit for each
	far  int
	step int // maximum of received bytes that are not reported
}

// The limits of all jobs. For short messages, near minus one step is more than direct.EagerCredit. So a
// program that ends without replicas because its messages are buffered also ends with replicas. For
// long messages, near lets a sender copy one message while others are being transferred. A slow
// replica may be behind by farShare over all senders, or by farLeast for each sender.
var (
	near     = [classes]int{short: 4 << 20, long: 16 << 20}
	farShare = 256 << 20
	farLeast = 32 << 20
)

// windowLimitsFor returns the limits in a job of n ranks.
func windowLimitsFor(n int) windowLimits {
	return windowLimits{near: near, far: max(farLeast, farShare/max(1, n-1)), step: near[short] / 8}
}

// A waitingSend is a send that has passed its message to the protocol but has not ended.
type waitingSend struct {
	request *engine.Request
	name    messageID
	class   int
	before  uint64 // bytes of the class sent to the rank before this send
	full    bool   // waits for the load to fall below flowLimit
	sync    bool   // synchronous, so it also waits for a match
	matched bool   // a replica has matched the message
	by      []bool // by replica: whether it has matched the message
	over    bool
}

// next returns the next send of a size, before it is counted.
func (w *window) next(name messageID, size int) waitingSend {
	class := classOf(size)
	return waitingSend{name: name, class: class, before: w.sent[class]}
}

// done reports whether s ends, because the live replicas of its destination lack few enough bytes. A
// replica that has not reported yet does not count.
func (w *window) done(s *waitingSend, limits *windowLimits, live func(replica int) bool) bool {
	quick, none := s.matched, true
	for k := range w.taken {
		if !w.known[k] || !live(k) {
			continue
		}
		none = false
		if k < len(s.by) && s.by[k] {
			continue
		}
		lacks := int64(s.before - w.taken[k][s.class])
		if lacks >= int64(limits.far) {
			return false
		}
		quick = quick || !s.sync && lacks < int64(limits.near[s.class])
	}
	return quick || none && !s.sync
}

// matchedBy records that a replica has matched s.
func (s *waitingSend) matchedBy(replica int) {
	s.matched = true
	for len(s.by) <= replica {
		s.by = append(s.by, false)
	}
	s.by[replica] = true
}

// grow makes room for a number of replicas. New replicas replay their rank's message log first, and
// do not count before their first report.
func (w *window) grow(replicas int) {
	for len(w.taken) < replicas {
		w.taken, w.known = append(w.taken, tally{}), append(w.known, false)
	}
}

// record records a replica's report of received bytes. An older report has no effect.
func (w *window) record(replica int, t tally) {
	w.known[replica] = true
	for class := range t {
		w.taken[replica][class] = max(w.taken[replica][class], t[class])
	}
}

// due reports whether a report of received bytes is due to the rank.
func (w *window) due(limits *windowLimits) bool {
	return w.received.sum()-w.reported.sum() >= uint64(limits.step)
}

// tallySize is the length of an encoded tally, in bytes.
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

// takenFrame returns the frame that reports t, the bytes that this process has received from another
// rank, to a process of that rank.
func takenFrame(rank int, t tally) frame.Frame {
	return frame.Frame{
		Header:  frame.Header{Kind: frame.Taken, Rank: uint32(rank), Size: tallySize},
		Payload: t.append(make([]byte, 0, tallySize)),
	}
}
