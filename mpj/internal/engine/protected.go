package engine

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// flowLimit is how many bytes may be on their way, or kept for processes that
// lack them, before a send of a protected engine waits. Raising it costs memory
// and hides slow links; lowering it makes every sender wait for the slowest
// replica.
var flowLimit = 64 << 20 // a variable for tests

// load is what flowLimit limits. e.mu is held.
func (e *Engine) load() int { return e.queued + e.protocol.Retained() }

// relieve ends the waits that a lower load ends. e.mu is held.
func (e *Engine) relieve() {
	if len(e.stalled) > 0 && e.load() < flowLimit {
		for _, r := range e.stalled {
			r.finish()
		}
		e.stalled = e.stalled[:0]
	}
	e.flush.wake()
}

// protect sends m, whose payload is the protocol's from now on.
func (e *Engine) protect(m protection.Message) {
	if m.Dest != e.self.Rank && usedAgain(m.Payload) {
		e.lent[&m.Payload[0]] = 1
	}
	if e.protocol.Retained() <= directLoad {
		e.writes = m.Dest
	}
	e.step()
	e.apply(e.protocol.Send(m))
	e.writeTo(m.Dest)
}

// directLoad is how many bytes others may lack of this process's messages for a
// send to write by itself. It is less than the system keeps for a connection, so
// that the send does not wait for a replica that hangs.
const directLoad = 32 << 10

// noRank is none.
const noRank = -1

// usedAgain reports whether a payload's memory is worth to be used again.
func usedAgain(payload []byte) bool {
	return len(payload) >= 1<<smallestKept || len(payload) > 0 && cap(payload) == shortPayload
}

// hold counts another user of a payload.
func (e *Engine) hold(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	if n, ok := e.lent[&payload[0]]; ok {
		e.lent[&payload[0]] = n + 1
	}
}

// letGo takes a user away. A payload without any is used again.
func (e *Engine) letGo(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	switch n := e.lent[&payload[0]]; n {
	case 0:
	case 1:
		delete(e.lent, &payload[0])
		e.giveBack(payload)
	default:
		e.lent[&payload[0]] = n - 1
	}
}

// A letter names a message of this process whose match is to be reported.
type letter struct {
	context uint32
	dest    int
	seq     uint64
}

// A synchronous send is done when any replica of its destination reports, by a
// Receipt, that it has matched the message: all replicas will. Reports are not
// numbered and not kept. When one may have been lost with a process or a channel,
// the sender asks with a Query, and those that have matched report anew.

// sendSynchronously sends m so that r is done when it has been matched. A
// message to this process itself may be, before protect returns.
func (e *Engine) sendSynchronously(r *Request, m protection.Message) {
	name := letter{m.Context, m.Dest, e.protocol.Sent(m.Context, m.Dest) + 1}
	if _, ok := e.receipts[name]; ok {
		delete(e.receipts, name)
		r.finish()
		e.protect(m)
		return
	}
	e.unmatched[name] = r
	joining := e.protocol.Joining() // with this message it may have caught up
	e.protect(m)
	if joining { // it may have been matched when nobody told this process
		e.query(name)
	}
}

// report tells all replicas of its source that m has been matched.
func (e *Engine) report(m message) {
	if !m.Sync {
		return
	}
	if m.Source == e.self.Rank {
		e.matchedOwn(letter{m.Context, m.Source, m.Seq})
		return
	}
	for k := range e.view.R {
		e.tellMatched(view.Process{Rank: m.Source, Replica: k}, m.Context, m.Seq)
	}
}

// matchedOwn is receipt for a message of this process to itself. It may have been
// matched while it was sent, before there is a request for it.
func (e *Engine) matchedOwn(name letter) {
	if _, ok := e.unmatched[name]; !ok {
		e.receipts[name] = struct{}{}
		return
	}
	e.receipt(name)
}

func (e *Engine) tellMatched(to view.Process, context uint32, seq uint64) {
	e.enqueue(protection.Envelope{To: to, Frame: channel.Frame{
		Header: channel.Header{Kind: channel.Receipt, Context: context, Rank: uint32(e.self.Rank), Seq: seq},
	}})
}

// receipt takes the news that a message has been matched, maybe before this
// replica sends it.
func (e *Engine) receipt(name letter) {
	if r, ok := e.unmatched[name]; ok {
		delete(e.unmatched, name)
		r.finish()
		return
	}
	if name.seq > e.protocol.Sent(name.context, name.dest) && len(e.receipts) < maxReceipts {
		e.receipts[name] = struct{}{}
	}
}

// maxReceipts bounds what others can make this process remember. One that is
// forgotten is asked for when the view changes.
const maxReceipts = 1 << 16

// arrivedReceipt takes a Receipt or a Query of another process.
func (e *Engine) arrivedReceipt(from view.Process, f channel.Header) {
	switch {
	case e.view.State(from) == view.Failed:
	case f.Kind == channel.Receipt:
		e.receipt(letter{f.Context, from.Rank, f.Seq})
	case e.protocol.Received(f.Context, from.Rank) >= f.Seq && !e.mailbox(f.Context).has(from.Rank, f.Seq):
		e.tellMatched(from, f.Context, f.Seq)
	}
}

// has reports whether the message of that name waits to be matched.
func (b *mailbox) has(source int, seq uint64) bool {
	return slices.ContainsFunc(b.unexpected, func(m message) bool { return m.Source == source && m.Seq == seq })
}

// ask asks anew for all matches that have not been reported.
func (e *Engine) ask() {
	for name := range e.unmatched {
		e.query(name)
	}
}

// query asks whether one message has been matched.
func (e *Engine) query(name letter) {
	r := e.unmatched[name]
	if r == nil || name.dest == e.self.Rank {
		return
	}
	lives := false
	for k := range e.view.R {
		to := view.Process{Rank: name.dest, Replica: k}
		lives = lives || e.view.Live(to)
		e.enqueue(protection.Envelope{To: to, Frame: channel.Frame{
			Header: channel.Header{Kind: channel.Query, Context: name.context, Rank: uint32(e.self.Rank), Seq: name.seq},
		}})
	}
	if !lives { // the rank has finished without it
		delete(e.unmatched, name)
		r.finish()
	}
}
