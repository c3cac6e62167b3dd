package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A caller is a process that has opened a channel to this process before this process's view
// contains it. Views and channels arrive by different paths.
type caller struct {
	from     view.Process
	receiver channel.Receiver
}

// maxCallers bounds the callers that wait for a view.
const maxCallers = 1024

// keepWaiting keeps a channel until the view contains its sender. It closes an earlier channel of
// the same sender. e.mu is held.
func (e *Engine) keepWaiting(from view.Process, r channel.Receiver) {
	for i, c := range e.callers {
		if c.from == from {
			c.receiver.Close()
			e.callers[i].receiver = r
			return
		}
	}
	if len(e.callers) == maxCallers {
		r.Close()
		return
	}
	e.callers = append(e.callers, caller{from, r})
}

// meet accepts the channels that have waited for the view. e.mu is held.
func (e *Engine) meet() {
	callers := e.callers
	e.callers = nil
	for _, c := range callers {
		e.accept(c.from, c.receiver)
	}
}

// keepPast logs the messages and outcomes that have reached this process. e.mu is held.
func (e *Engine) keepPast(out protection.Output) {
	if e.past == nil {
		return
	}
	due, why, forGood := e.past.keep(out, e.self.Rank)
	if due != nil {
		e.running.Go(func() { e.past.write(due) }) // until the file has caught up
	}
	if why != "" && e.unkept != nil {
		e.running.Go(func() { e.unkept(why, forGood) }) // until it returns
	}
}

// recall sends a piece of the log to a replica that asks for it.
func (e *Engine) recall(r protection.Recall) {
	e.running.Go(func() { // until the piece is read
		var piece []byte
		var last bool
		if e.past != nil {
			piece, last = e.past.piece(r.To, r.Position)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.enqueue(protection.Envelope{To: r.To, Frame: protection.PastFrame(e.self.Rank, r.Position, piece, last)})
	})
}

// pastLimit is the number of bytes of unreceived messages at which a new replica stops asking for
// more of its rank's log. Without the limit it would hold the whole log in memory.
var pastLimit = 64 << 20 // a variable for tests

// sated reports whether the program has enough messages to receive for now.
func (e *Engine) sated() bool {
	if e.uneaten = e.unreceived(); e.uneaten < pastLimit {
		return false
	}
	e.armTick()
	return true
}

// unreceived returns the number of bytes of messages that no receive has matched.
func (e *Engine) unreceived() (bytes int) {
	for _, b := range e.mailboxes {
		for i := range b.unexpected {
			bytes += b.unexpected[i].size()
		}
	}
	return bytes
}

// goOn asks for more of the log once the program has received enough. It also asks when the program
// waits in a call and has received nothing for a tick: the awaited message may come later in the
// log.
func (e *Engine) goOn() {
	if len(e.postponed) == 0 {
		return
	}
	before := e.uneaten
	waits := len(e.sleepers) > 0 || e.poller.spinning || e.loans > 0
	if e.sated() && !(waits && e.uneaten == before) {
		return
	}
	for _, envelope := range e.postponed {
		e.enqueue(envelope)
	}
	e.postponed = nil
}

// countRelived counts the messages replayed from the log.
func (e *Engine) countRelived(ms []protection.Message) {
	e.relived += uint64(len(ms))
	for i := range ms {
		e.relivedBytes += uint64(len(ms[i].Payload))
	}
}

// tellJoined reports that this process has caught up with its rank. e.mu is held.
func (e *Engine) tellJoined() {
	tell, messages, bytes := e.joined, e.relived, e.relivedBytes
	e.joined = nil
	e.running.Go(func() { tell(messages, bytes) }) // until tell returns
}
