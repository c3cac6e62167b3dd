package job

import (
	"bytes"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An Emission ensures that each record of a rank's output reaches the user once, whichever replica
// it comes from (R6). Replicas write the same records, so a number identifies a record.
//
// An Emission holds back an unfinished last line. If the process was killed in the middle of the
// line, another replica writes the whole line.
type Emission struct {
	ranks [][2]emitted
}

// emitted is the state of one stream of one rank.
type emitted struct {
	resumed bool           // next began as a recorded position, which may be behind
	heard   []view.Process // if resumed: processes whose output has arrived since
	next    uint64         // number of the next record for the user
	tails   []tail         // at most one per replica
}

// A tail is an unfinished last line.
type tail struct {
	from   view.Process
	number uint64 // number of the record; less than next once another replica has finished it
	data   []byte
}

// NewEmission returns the emission of a job of n ranks.
func NewEmission(n int) *Emission { return &Emission{ranks: make([][2]emitted, n)} }

// maxUncounted bounds the records of a resumed job that the user has received and that were not counted. A machine
// that crashes loses at most the counts of its last minute.
const maxUncounted = 1 << 32

// ResumeEmission returns the emission of a resumed job. shown is the number of records that the user has
// received of each stream of each rank. The user may have received more, which were not counted because the machine
// crashed or its disk was full. The peers no longer have records that were acknowledged, so the first output
// of a process may begin later. A peer that lies can thus make the emission skip records. Next then grows by
// more than the records that Add returns.
func ResumeEmission(shown [][2]uint64) *Emission {
	e := NewEmission(len(shown))
	for rank := range shown {
		for s, count := range shown[rank] {
			e.ranks[rank][s] = emitted{next: count, resumed: true}
		}
	}
	return e
}

// Add takes consecutive records, the first of which has number first, from a process that is or has
// been the output leader of its rank. It returns the records that the user does not have yet, and
// their number. ok is false if the peer broke the protocol: records are missing, or some follow an
// unfinished line.
func (e *Emission) Add(p view.Process, s Stream, first uint64, data []byte) (fresh []byte, records uint64, ok bool) {
	o := &e.ranks[p.Rank][s-1]
	late := o.resumed && !slices.Contains(o.heard, p)
	if first > o.next && !(late && first-o.next <= maxUncounted) {
		return nil, 0, false
	}
	if late {
		o.heard = append(slices.Clip(o.heard), p)
	}
	o.next = max(o.next, first)
	data = data[RecordsLen(data, o.next-first):]
	records, size := WholeRecords(data)
	o.next += records
	if size < len(data) {
		o.tails = append(without(o.tails, p), tail{from: p, number: o.next, data: bytes.Clone(data[size:])})
	}
	return data[:size], records, true
}

// Next returns how many records of a rank's stream the user has received.
func (e *Emission) Next(rank int, s Stream) uint64 { return e.ranks[rank][s-1].next }

// Tail returns the unfinished last line of a rank's stream once the job is over with the output of view v, or
// nil if there is no such line. Tail chooses the latest line of a replica that has finished or that is the
// output leader. If the rank has no output leader, it chooses the latest line of any replica.
func (e *Emission) Tail(v view.View, rank int, s Stream) []byte {
	o := &e.ranks[rank][s-1]
	leader, ok := v.OutputLeader(rank)
	for i := len(o.tails) - 1; i >= 0; i-- {
		t := &o.tails[i]
		if t.number == o.next && (!ok || t.from == leader || v.State(t.from) == view.Finished) && len(t.data) > 0 {
			return t.data
		}
	}
	return nil
}

// without returns a copy of tails without those of p.
func without(tails []tail, p view.Process) []tail {
	return slices.DeleteFunc(slices.Clone(tails), func(t tail) bool { return t.from == p })
}
