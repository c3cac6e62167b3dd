package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// newFlows returns the flows of an engine with a protocol. If this process joins a running job, no
// other replica counts yet.
func (e *Engine) newFlows(joining bool) {
	e.credits = creditsFor(e.view.N)
	e.flows = make([]flow, e.view.N)
	for rank := range e.flows {
		f := &e.flows[rank]
		f.grow(max(e.view.R, e.self.Replica+1)) // the view may not contain this process yet
		for k := range f.known {
			f.known[k] = !joining && rank != e.self.Rank && e.view.Live(view.Process{Rank: rank, Replica: k})
		}
	}
	e.flows[e.self.Rank].known[e.self.Replica] = true // this process does not report to itself
}

// hasRoom reports whether the replicas of the destination of h lack few enough bytes for h to end.
func (e *Engine) hasRoom(h *heldSend) bool {
	if !h.sync && e.protocol.Joining() { // other replicas have already sent these messages, and the credits are not known yet
		return true
	}
	return e.flows[h.name.rank].done(h, &e.credits, func(k int) bool {
		return e.view.Live(view.Process{Rank: h.name.rank, Replica: k})
	})
}

// next returns the next send to a rank, without its number. e.mu is held.
func (e *Engine) next(context uint32, dest, size int) heldSend {
	return e.flows[dest].next(messageID{context: context, rank: dest}, size)
}

// name sets the number of h, which is the next send of its context and rank.
func (e *Engine) name(h *heldSend) { h.name.seq = e.protocol.Sent(h.name.context, h.name.rank) + 1 }

// sendStandard sends m. r is done when the destination has room for m.
func (e *Engine) sendStandard(r *Request, m protection.Message) {
	h := e.next(m.Context, m.Dest, len(m.Payload))
	e.name(&h)
	if e.load() >= flowLimit {
		h.full = true
		e.stalled = append(e.stalled, &h)
	}
	if e.sendHeld(r, &h, m); !h.over {
		e.query(&h)
	}
}

// sendHeld sends m. r is done when h is done, which may be before sendHeld returns.
func (e *Engine) sendHeld(r *Request, h *heldSend, m protection.Message) {
	h.request = r
	e.held[h.name] = h
	e.protect(m)
	e.settleHeld(h)
}

// settleHeld ends h if it is done.
func (e *Engine) settleHeld(h *heldSend) {
	if !h.full && e.hasRoom(h) {
		e.endHeld(h)
	}
}

func (e *Engine) endHeld(h *heldSend) {
	if h.over {
		return
	}
	h.over = true
	delete(e.held, h.name)
	h.request.finish()
}

// settleAllHeld ends all sends to a rank that are done.
func (e *Engine) settleAllHeld(rank int) {
	for _, h := range e.held {
		if h.name.rank == rank {
			e.settleHeld(h)
		}
	}
}

// endHeldOf ends a send whose message has been passed to the protocol.
func (e *Engine) endHeldOf(r *Request) {
	for _, h := range e.held {
		if h.request == r {
			e.endHeld(h)
			return
		}
	}
}

// take records that the program has received m. Occasionally it reports the received bytes to the
// replicas of the source.
func (e *Engine) take(m *message) {
	if e.protocol == nil {
		return
	}
	f := &e.flows[m.Source]
	f.received.add(len(m.Payload))
	switch {
	case m.Source == e.self.Rank:
		f.record(e.self.Replica, f.received)
		e.settleAllHeld(m.Source)
	case e.logComplete && f.due(&e.credits):
		e.tellTaken(m.Source)
	}
}

// takeUnreceived records that the program will never receive m.
func (e *Engine) takeUnreceived(m message) {
	e.take(&m)
	e.report(m)
}

// tellTaken reports to the replicas of a rank the number of bytes that this process has received
// from the rank.
func (e *Engine) tellTaken(rank int) {
	if rank == e.self.Rank {
		return
	}
	e.flows[rank].reported = e.flows[rank].received
	for k := range e.view.R {
		e.tellTakenTo(view.Process{Rank: rank, Replica: k})
	}
}

func (e *Engine) tellTakenTo(p view.Process) {
	e.enqueue(protection.Envelope{To: p, Frame: takenFrame(e.self.Rank, e.flows[p.Rank].received)})
}

// arrivedTaken processes another process's report of received bytes.
func (e *Engine) arrivedTaken(from view.Process, f *frame.Frame) error {
	t, err := decodeTally(f.Payload)
	if err != nil || !e.view.Live(from) || from.Rank == e.self.Rank {
		return err
	}
	e.flows[from.Rank].record(from.Replica, t)
	e.settleAllHeld(from.Rank)
	return nil
}

// markLogComplete reports to all ranks the number of bytes that this process, which was new, has
// received from them. From then on the process counts.
func (e *Engine) markLogComplete() {
	e.logComplete = true
	for rank := range e.flows {
		e.tellTaken(rank)
	}
	e.recordFinished()
}

// addFlows makes room for the processes that are new in the view. It reports to them the number of
// bytes that this process has received of the messages that they will send again.
func (e *Engine) addFlows(before view.View) {
	for rank := range e.flows {
		e.flows[rank].grow(e.view.R)
	}
	for _, p := range e.view.Processes() {
		if e.logComplete && before.State(p) == view.Vacant && e.view.Live(p) && p.Rank != e.self.Rank {
			e.tellTakenTo(p)
		}
	}
	for _, h := range e.held {
		e.settleHeld(h)
	}
}

// endFlows records that the program receives no more messages. From then on, messages to this
// process delay no sender.
func (e *Engine) endFlows() {
	e.ending = true
	for _, b := range e.mailboxes {
		for m := range b.Messages() {
			e.dropUnreceived(m)
		}
	}
}

// dropUnreceived drops the payload of a message that the program will not receive. It keeps the
// reason of a failure, because Finalize reports it.
func (e *Engine) dropUnreceived(m *message) {
	e.takeUnreceived(*m)
	if m.Tag == engineapi.ReasonTag && len(m.Payload) <= engineapi.ReasonMost {
		return
	}
	m.Payload = nil
}
