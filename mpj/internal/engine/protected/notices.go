package protected

import (
	"maps"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// A messageID names a message to or from a rank.
type messageID struct {
	context uint32
	rank    int // the other rank
	seq     uint64
}

// notices exchanges match notices. Each replica of a message's destination reports the match of the
// message in a match notice, a frame of kind Receipt. It reports the match of a synchronous message
// to all replicas of the source, and of any other message only to the replicas whose send waits and
// that have sent a Query. Match notices are neither numbered nor kept. When a notice may have been
// lost with a process or a channel, the sender asks, and the replicas that have matched the message
// report again. Of the engine, it needs the view, the queues, and whether a message is unmatched.
type notices struct {
	p      *transport
	unsent map[messageID]struct{}       // matched messages that this process has yet to send
	asked  map[messageID][]view.Process // processes that must get a notice when a message has been matched
}

// matched reports the match of m to the replicas of its source that wait for it.
func (n *notices) matched(m match.Message) {
	name := messageID{m.Context, m.Source, m.Seq}
	switch {
	case m.Source == n.p.loop.Self().Rank:
		n.record(name, n.p.loop.Self().Replica)
	case m.Sync:
		for k := range n.p.loop.View().R {
			n.send(view.Process{Rank: m.Source, Replica: k}, m.Context, m.Seq)
		}
	}
	if len(n.asked) == 0 {
		return
	}
	for _, p := range n.asked[name] {
		n.send(p, m.Context, m.Seq)
	}
	delete(n.asked, name)
}

// send sends a match notice.
func (n *notices) send(to view.Process, context uint32, seq uint64) {
	n.p.queue(to, frame.Frame{
		Header: frame.Header{Kind: frame.Receipt, Context: context, Rank: uint32(n.p.loop.Self().Rank), Seq: seq},
	})
}

// record records that a replica has matched a message, possibly before this process sends it.
func (n *notices) record(name messageID, replica int) {
	if s, ok := n.p.windows.waiting[name]; ok {
		s.matchedBy(replica)
		n.p.windows.settle(s)
		return
	}
	if name.seq > n.p.protocol.Sent(name.context, name.rank) && len(n.unsent) < maxNotices {
		n.unsent[name] = struct{}{}
	}
}

// arrivedEarly reports whether a notice of the match of a message has arrived before this process
// sends the message. It forgets the notice.
func (n *notices) arrivedEarly(name messageID) bool {
	_, ok := n.unsent[name]
	delete(n.unsent, name)
	return ok
}

// maxNotices bounds the entries that other processes can make this process keep. A dropped notice is
// requested again when the view changes.
const maxNotices = 1 << 16

// arrived processes a match notice or a Query of another process.
func (n *notices) arrived(from view.Process, f frame.Header) {
	name := messageID{f.Context, from.Rank, f.Seq}
	switch {
	case n.p.loop.View().State(from) == view.Failed || from.Rank == n.p.loop.Self().Rank:
	case f.Seq == 0 && f.Kind == frame.Query:
		n.send(from, f.Context, 0)
	case f.Seq == 0:
		n.p.finish.reached(from)
	case f.Kind == frame.Receipt:
		n.record(name, from.Replica)
	case n.hasMatched(name):
		n.send(from, f.Context, f.Seq)
	case n.p.protocol.Received(f.Context, from.Rank) >= f.Seq || len(n.asked) < maxNotices:
		n.ask(name, from)
	}
}

// hasMatched reports whether a message has arrived and was matched or will never be matched.
func (n *notices) hasMatched(name messageID) bool {
	return n.p.protocol.Received(name.context, name.rank) >= name.seq &&
		(n.p.finish.ending || !n.p.loop.Mailbox(name.context).Has(name.rank, name.seq))
}

// resume forgets the notices of messages that this process has sent, and answers the processes that
// have asked about messages that it has received, both in the checkpoint from which it resumes.
func (n *notices) resume() {
	maps.DeleteFunc(n.unsent, func(name messageID, _ struct{}) bool {
		return name.seq <= n.p.protocol.Sent(name.context, name.rank)
	})
	for name, by := range n.asked {
		if n.hasMatched(name) {
			for _, p := range by {
				n.send(p, name.context, name.seq)
			}
			delete(n.asked, name)
		}
	}
}

// ask records that p must get a notice when a message of its rank is matched. The number of queries
// is bounded by the number of unmatched messages at this process, plus maxNotices for messages that
// have not arrived. The master of a rank sends its query after the message.
func (n *notices) ask(name messageID, p view.Process) {
	if !slices.Contains(n.asked[name], p) {
		n.asked[name] = append(n.asked[name], p)
	}
}

// allRanks is an argument of queryAll.
const allRanks = -1

// queryAll asks again for the matches of all waiting sends to one rank or, if rank is allRanks, to all
// ranks.
func (n *notices) queryAll(rank int) {
	for _, s := range n.p.windows.waiting {
		if rank == allRanks || s.name.rank == rank {
			n.query(s)
		}
	}
}

// query asks all replicas of the destination whether they have matched one message.
func (n *notices) query(s *waitingSend) {
	if s.name.rank == n.p.loop.Self().Rank {
		return
	}
	lives, v := false, n.p.loop.View()
	for k := range v.R {
		to := view.Process{Rank: s.name.rank, Replica: k}
		lives = lives || v.Live(to)
		n.p.queue(to, frame.Frame{
			Header: frame.Header{Kind: frame.Query, Context: s.name.context, Rank: uint32(n.p.loop.Self().Rank), Seq: s.name.seq},
		})
	}
	if !lives { // the rank has finished without receiving the message
		n.p.windows.end(s)
	}
}
