package protected

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
)

// rejoin lets new replicas replay the input of this process's rank. If this process is itself a new
// replica, rejoin controls how fast the process replays. Of the engine, it needs the unmatched
// messages, whether the program waits, the tick, the queues, and goroutines that Close waits for.
type rejoin struct {
	p   *transport
	log *messagelog.Log // nil if no replica will join

	complete  bool                  // this process is not new, or has its rank's complete message log
	joined    bool                  // this process is not new, or has caught up with its rank
	postponed []protection.Envelope // LogRequest frames held back until the program has received more
	unmatched int                   // bytes of unmatched messages at the last tick
	messages  uint64                // number of messages replayed from the log to this process
	bytes     uint64                // bytes of these messages
}

func newRejoin(p *transport, c *Config) rejoin {
	joining := c.Protocol.Joining()
	return rejoin{p: p, log: c.Log, complete: !joining, joined: !joining}
}

// keep logs the messages and outcomes that have reached this process.
func (r *rejoin) keep(out protection.Output) {
	if r.log == nil {
		return
	}
	write, why, permanent := r.log.Keep(out, r.p.loop.Self().Rank)
	if write != nil {
		r.p.loop.Go(write) // until the file has caught up
	}
	if why != "" {
		r.p.reports.reportLogDropped(why, permanent)
	}
}

// sendPiece sends a requested piece of the log to a replica.
func (r *rejoin) sendPiece(request protection.LogRequest) {
	r.p.loop.Go(func() { // until the piece is read
		var piece []byte
		var last bool
		if r.log != nil {
			piece, last = r.log.Piece(request.To, request.Position)
		}
		r.p.loop.Lock()
		defer r.p.loop.Unlock()
		r.p.queue(request.To, protection.MessageLogFrame(r.p.loop.Self().Rank, request.Position, piece, last))
	})
}

// replayLimit is the number of bytes of unreceived messages at which a new replica stops asking for
// more of its rank's log. Without the limit the replica would keep the whole log in memory.
var replayLimit = 64 << 20 // a variable for tests

// postpone holds back a frame that requests more of the log if the unreceived messages have reached
// replayLimit, and reports whether it did.
func (r *rejoin) postpone(envelope protection.Envelope) bool {
	if envelope.Frame.Kind != frame.LogRequest || !r.hasEnough() {
		return false
	}
	r.postponed = append(r.postponed, envelope)
	return true
}

// hasEnough reports whether the unreceived messages have reached replayLimit.
func (r *rejoin) hasEnough() bool {
	if r.unmatched = r.p.unreceived(); r.unmatched < replayLimit {
		return false
	}
	r.p.loop.Arm()
	return true
}

// requestMore requests more of the log once the program has received enough messages. It also does so
// when the program waits in a call and has received no message for a tick, because the awaited
// message may be further on in the log.
func (r *rejoin) requestMore() {
	if len(r.postponed) == 0 {
		return
	}
	before := r.unmatched
	if r.hasEnough() && !(r.p.loop.ProgramWaits() && r.unmatched == before) {
		return
	}
	for _, envelope := range r.postponed {
		r.p.queue(envelope.To, envelope.Frame)
	}
	r.postponed = nil
}

// countReplayed counts the messages replayed from the log.
func (r *rejoin) countReplayed(ms []protection.Message) {
	r.messages += uint64(len(ms))
	for i := range ms {
		r.bytes += uint64(len(ms[i].Payload))
	}
}

// review checks, after an output of the protocol, whether this process has its rank's complete log or
// has caught up with its rank. It reports the latter.
func (r *rejoin) review() {
	if !r.complete && r.p.protocol.LogComplete() {
		r.complete = true
		r.p.logCompleted()
	}
	if !r.joined && !r.p.protocol.Joining() {
		r.joined = true
		r.p.reports.reportJoined(r.messages, r.bytes)
	}
}
