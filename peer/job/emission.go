package job

import (
	"bytes"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// An emission makes sure that each record of a rank's output reaches the user
// once, whichever replica it comes from (R6). Replicas write the same records,
// so a record is known by its number.
//
// An unfinished last line is held back: when its process was killed in the
// middle of it, another replica will write the line whole.
type emission struct {
	ranks [][2]emitted
}

// emitted is the state of one stream of one rank.
type emitted struct {
	loose bool   // next is what another process of the submitter has noted last, and nothing has come since
	next  uint64 // number of the record that the user gets next
	tails []tail // at most one of each replica
}

// A tail is an unfinished last line.
type tail struct {
	from   view.Process
	number uint64 // of the record; less than next once another replica has finished it
	data   []byte
}

// newEmission returns the emission of a job of n ranks.
func newEmission(n int) *emission { return &emission{ranks: make([][2]emitted, n)} }

// goOn returns the emission of a job of which the user has got so many records of each
// stream of each rank already, and perhaps a few more, that nobody has noted: a peer keeps
// none of those that were acknowledged.
func goOn(shown [][2]uint64) *emission {
	e := newEmission(len(shown))
	for rank := range shown {
		for s, count := range shown[rank] {
			e.ranks[rank][s] = emitted{next: count, loose: true}
		}
	}
	return e
}

// Add takes consecutive records, the first of which has number first, of the
// process that speaks for its rank, or has spoken, and returns those that the user has not
// got yet, and their count. ok is false when the peer broke the protocol: there is a gap, or
// more after an unfinished line.
func (e *emission) Add(p view.Process, s Stream, first uint64, data []byte) (fresh []byte, records uint64, ok bool) {
	o := &e.ranks[p.Rank][s-1]
	if first > o.next && !o.loose {
		return nil, 0, false
	}
	o.next, o.loose = max(o.next, first), false
	data = data[jobpb.RecordsLen(data, o.next-first):]
	records, size := jobpb.WholeRecords(data)
	o.next += records
	if size < len(data) {
		o.tails = append(without(o.tails, p), tail{from: p, number: o.next, data: bytes.Clone(data[size:])})
	}
	return data[:size], records, true
}

// Next returns how many records of a rank's stream the user has got.
func (e *emission) Next(rank int, s Stream) uint64 { return e.ranks[rank][s-1].next }

// Tail returns the unfinished last line of a rank's stream once the job is over
// in view v, or nil: that of a replica that has finished, or of the speaker, or
// of whoever was the last to speak.
func (e *emission) Tail(v view.View, rank int, s Stream) []byte {
	o := &e.ranks[rank][s-1]
	speaker, ok := v.Speaker(rank)
	for i := len(o.tails) - 1; i >= 0; i-- {
		t := &o.tails[i]
		if t.number == o.next && (!ok || t.from == speaker || v.State(t.from) == view.Finished) && len(t.data) > 0 {
			return t.data
		}
	}
	return nil
}

// without returns the tails of others than p, in memory of their own.
func without(tails []tail, p view.Process) []tail {
	return slices.DeleteFunc(slices.Clone(tails), func(t tail) bool { return t.from == p })
}
