package engine

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A messageID names a message to or from a rank.
type messageID struct {
	context uint32
	rank    int // the other rank
	seq     uint64
}

// Each replica of a message's destination reports the match in a Receipt. It reports the match of a
// synchronous message to all replicas of the source, and of any other message only to the replicas
// whose send waits and that have sent a Query. Receipts are neither numbered nor kept. When a
// Receipt may have been lost with a process or a channel, the sender asks, and the replicas that
// have matched the message report again.

// sendSynchronously sends m. r is done when m has been matched. A message of this process to itself
// may be matched before protect returns.
func (e *Engine) sendSynchronously(r *Request, m protection.Message) {
	h := e.next(m.Context, m.Dest, len(m.Payload))
	h.sync = true
	e.name(&h)
	if _, ok := e.receipts[h.name]; ok {
		delete(e.receipts, h.name)
		h.matched = true
	}
	if e.sendHeld(r, &h, m); !h.over { // all replicas may have matched m before a Receipt could arrive
		e.query(&h)
	}
}

// report reports the match of m to the replicas of its source that wait for it.
func (e *Engine) report(m message) {
	name := messageID{m.Context, m.Source, m.Seq}
	switch {
	case m.Source == e.self.Rank:
		if e.protocol != nil {
			e.receipt(name, e.self.Replica)
		}
	case m.Sync:
		for k := range e.view.R {
			e.tellMatched(view.Process{Rank: m.Source, Replica: k}, m.Context, m.Seq)
		}
	}
	if len(e.asked) == 0 {
		return
	}
	for _, p := range e.asked[name] {
		e.tellMatched(p, m.Context, m.Seq)
	}
	delete(e.asked, name)
}

func (e *Engine) tellMatched(to view.Process, context uint32, seq uint64) {
	e.enqueue(protection.Envelope{To: to, Frame: frame.Frame{
		Header: frame.Header{Kind: frame.Receipt, Context: context, Rank: uint32(e.self.Rank), Seq: seq},
	}})
}

// receipt records that a replica has matched a message, possibly before this process sends it.
func (e *Engine) receipt(name messageID, replica int) {
	if h, ok := e.held[name]; ok {
		h.report(replica)
		e.settleHeld(h)
		return
	}
	if name.seq > e.protocol.Sent(name.context, name.rank) && len(e.receipts) < maxReceipts {
		e.receipts[name] = struct{}{}
	}
}

// maxReceipts bounds the entries that other processes can make this process keep. A dropped receipt
// is requested again when the view changes.
const maxReceipts = 1 << 16

// arrivedReceipt processes a Receipt or a Query of another process.
func (e *Engine) arrivedReceipt(from view.Process, f frame.Header) {
	name := messageID{f.Context, from.Rank, f.Seq}
	switch {
	case e.view.State(from) == view.Failed || from.Rank == e.self.Rank:
	case f.Seq == 0 && f.Kind == frame.Query:
		e.tellMatched(from, f.Context, 0)
	case f.Seq == 0:
		e.reached(from)
	case f.Kind == frame.Receipt:
		e.receipt(name, from.Replica)
	case e.hasMatched(name):
		e.tellMatched(from, f.Context, f.Seq)
	case e.protocol.Received(f.Context, from.Rank) >= f.Seq || len(e.asked) < maxReceipts:
		e.ask(name, from)
	}
}

// hasMatched reports whether a message has arrived and was matched or will never be matched.
func (e *Engine) hasMatched(name messageID) bool {
	return e.protocol.Received(name.context, name.rank) >= name.seq &&
		(e.ending || !e.mailbox(name.context).Has(name.rank, name.seq))
}

// answerAsked answers the processes that have asked about messages that are received in a
// checkpoint.
func (e *Engine) answerAsked() {
	for name, by := range e.asked {
		if e.hasMatched(name) {
			for _, p := range by {
				e.tellMatched(p, name.context, name.seq)
			}
			delete(e.asked, name)
		}
	}
}

// ask records that p must get a Receipt when a message of its rank is matched. The number of queries
// is bounded by the number of unmatched messages at this process, plus maxReceipts for messages that
// have not arrived. The master of a rank sends its query after the message.
func (e *Engine) ask(name messageID, p view.Process) {
	if !slices.Contains(e.asked[name], p) {
		e.asked[name] = append(e.asked[name], p)
	}
}

// queryAll asks again for the matches of all held sends to one rank or, if rank is noRank, to all
// ranks.
func (e *Engine) queryAll(rank int) {
	for _, h := range e.held {
		if rank == noRank || h.name.rank == rank {
			e.query(h)
		}
	}
}

// query asks all replicas of the destination whether they have matched one message.
func (e *Engine) query(h *heldSend) {
	if h.name.rank == e.self.Rank {
		return
	}
	lives := false
	for k := range e.view.R {
		to := view.Process{Rank: h.name.rank, Replica: k}
		lives = lives || e.view.Live(to)
		e.enqueue(protection.Envelope{To: to, Frame: frame.Frame{
			Header: frame.Header{Kind: frame.Query, Context: h.name.context, Rank: uint32(e.self.Rank), Seq: h.name.seq},
		}})
	}
	if !lives { // the rank has finished without receiving the message
		e.endHeld(h)
	}
}
