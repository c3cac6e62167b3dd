package protected

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// The methods here process the frames of other processes and the changes of channels.

// An incoming is the Handler of the frames from one process.
type incoming struct {
	p    *transport
	from view.Process
}

// Incoming returns the handler of the frames from a process.
func (p *transport) Incoming(from view.Process, _ bool, _ engine.MemoryReader) engine.Handler {
	return incoming{p, from}
}

// Buffer returns new memory. Payloads of the protocol's own frames are never given back, so they do
// not come from the pool.
func (i incoming) Buffer(h frame.Header) []byte {
	if h.Kind != frame.Data {
		return make([]byte, h.Size)
	}
	return i.p.loop.Room(int(h.Size))
}

// Arrived processes a frame.
func (i incoming) Arrived(f *frame.Frame) error { return i.p.arrived(i.from, f) }

// arrived processes a frame of another process.
func (p *transport) arrived(from view.Process, f *frame.Frame) error {
	switch f.Kind {
	case frame.Receipt, frame.Query:
		p.notices.arrived(from, f.Header)
		return nil
	case frame.Taken:
		return p.windows.arrived(from, f)
	case frame.Pace, frame.PaceReply:
		return p.leading.arrived(from, f)
	}
	out, err := p.protocol.Receive(from, *f)
	if err != nil {
		return err
	}
	replayed := f.Kind == frame.MessageLog
	if replayed {
		p.rejoin.countReplayed(out.Deliver)
	}
	p.apply(out)
	p.loop.Relieve()
	p.loop.Arm()
	if replayed {
		p.checkpointing.resuming.Wake()
	}
	return nil
}

// Reopened asks again for the answers that the previous channel may have lost.
func (i incoming) Reopened() {
	if i.p.loop.Err() != nil {
		return
	}
	i.p.notices.queryAll(i.from.Rank)
	i.p.finish.askReachedAgain(i.from)
}

// Sent records that a queue no longer contains a payload.
func (p *transport) Sent(out engine.Parcel) { p.retained.release(out.Payload) }

// Written removes all written frames. The protocol keeps those that may have to be sent again.
func (p *transport) Written(o *engine.Outlet, n int) { o.Pop(n) }

// Relieve ends the waits of sends that the present load allows to end.
func (p *transport) Relieve() { p.windows.relieve() }

// Reopened repeats what the previous channel of o may have lost.
func (p *transport) Reopened(o *engine.Outlet) {
	keepAnswers(o)
	to := o.To()
	p.apply(p.protocol.Reopened(to))
	p.windows.reopened(to)
	p.notices.queryAll(to.Rank)
	p.finish.askReachedAgain(to)
	p.loop.Relieve()
	p.loop.Arm()
}

// isAnswer reports whether a frame of a kind is the transport's own answer to another process.
func isAnswer(k frame.Kind) bool { return k == frame.Receipt || k == frame.PaceReply }

// keepAnswers removes from a queue the frames that will be sent again. These are the frames of the
// protocol and, unless they are obsolete, the transport's own questions and reports. Answers stay,
// because the question may have been repeated before this process had the new channel. Each answer
// stays once. Otherwise the queue would grow with every channel that breaks, and channels that break
// early would never carry all of it.
func keepAnswers(o *engine.Outlet) {
	present := make(map[frame.Header]bool)
	o.Keep(func(h frame.Header) bool {
		if !isAnswer(h.Kind) || present[h] {
			return false
		}
		present[h] = true
		return true
	})
}

// Unreachable returns nil: the job continues with other replicas.
func (p *transport) Unreachable(view.Process, time.Duration, error) error { return nil }

// Gone does nothing, because the protocol follows the view.
func (p *transport) Gone(*engine.Outlet) {}
