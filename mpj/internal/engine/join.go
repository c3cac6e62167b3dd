package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An earlyChannel is a channel from a process that this process's view does not contain yet. Views
// and channels arrive by different paths.
type earlyChannel struct {
	from     view.Process
	receiver channel.Receiver
}

// maxEarlyChannels bounds the channels that wait for a view.
const maxEarlyChannels = 1024

// keepEarly keeps a channel until the view contains its sender. It closes an earlier channel of
// the same sender. e.mu is held.
func (e *Engine) keepEarly(from view.Process, r channel.Receiver) {
	for i, c := range e.earlyChannels {
		if c.from == from {
			c.receiver.Close()
			e.earlyChannels[i].receiver = r
			return
		}
	}
	if len(e.earlyChannels) == maxEarlyChannels {
		r.Close()
		return
	}
	e.earlyChannels = append(e.earlyChannels, earlyChannel{from, r})
}

// acceptEarly accepts the channels that have waited for the view. e.mu is held.
func (e *Engine) acceptEarly() {
	earlyChannels := e.earlyChannels
	e.earlyChannels = nil
	for _, c := range earlyChannels {
		e.accept(c.from, c.receiver)
	}
}

// logReceived logs the messages and outcomes that have reached this process. e.mu is held.
func (e *Engine) logReceived(out protection.Output) {
	if e.log == nil {
		return
	}
	due, why, permanent := e.log.keep(out, e.self.Rank)
	if due != nil {
		e.running.Go(func() { e.log.write(due) }) // until the file has caught up
	}
	if why != "" && e.logDropped != nil {
		e.running.Go(func() { e.logDropped(why, permanent) }) // until the callback returns
	}
}

// sendLogPiece sends a requested piece of the log to a replica.
func (e *Engine) sendLogPiece(r protection.LogRequest) {
	e.running.Go(func() { // until the piece is read
		var piece []byte
		var last bool
		if e.log != nil {
			piece, last = e.log.piece(r.To, r.Position)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.enqueue(protection.Envelope{To: r.To, Frame: protection.MessageLogFrame(e.self.Rank, r.Position, piece, last)})
	})
}

// replayLimit is the number of bytes of unreceived messages at which a new replica stops asking for
// more of its rank's log. Without the limit the replica would keep the whole log in memory.
var replayLimit = 64 << 20 // a variable for tests

// hasEnough reports whether the unreceived messages have reached replayLimit.
func (e *Engine) hasEnough() bool {
	if e.unmatchedBytes = e.unreceived(); e.unmatchedBytes < replayLimit {
		return false
	}
	e.armTick()
	return true
}

// unreceived returns the number of bytes of messages that no receive has matched.
func (e *Engine) unreceived() (bytes int) {
	for _, b := range e.mailboxes {
		for m := range b.Messages() {
			bytes += m.Size
		}
	}
	return bytes
}

// requestMoreLog requests more of the log once the program has received enough messages. It also
// does so when the program waits in a call and has received no message for a tick, because the
// awaited message may be further on in the log.
func (e *Engine) requestMoreLog() {
	if len(e.postponed) == 0 {
		return
	}
	before := e.unmatchedBytes
	waits := len(e.sleepers) > 0 || e.poller.spinning || e.loans > 0
	if e.hasEnough() && !(waits && e.unmatchedBytes == before) {
		return
	}
	for _, envelope := range e.postponed {
		e.enqueue(envelope)
	}
	e.postponed = nil
}

// countReplayed counts the messages replayed from the log.
func (e *Engine) countReplayed(ms []protection.Message) {
	e.replayed += uint64(len(ms))
	for i := range ms {
		e.replayedBytes += uint64(len(ms[i].Payload))
	}
}

// tellJoined reports that this process has caught up with its rank. e.mu is held.
func (e *Engine) tellJoined() {
	tell, messages, bytes := e.joined, e.replayed, e.replayedBytes
	e.joined = nil
	e.running.Go(func() { tell(messages, bytes) }) // until the callback returns
}
