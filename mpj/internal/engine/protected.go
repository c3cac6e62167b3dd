package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/lead"
)

// A protected is the part of an engine that exists only with a protection protocol. Each of its
// concerns has a type of its own, which reaches the engine by the methods of protected. The engine's
// mutex guards a protected and its parts, and is held at all calls of their methods.
type protected struct {
	e             *Engine
	protocol      protection.Protocol
	rejoin        rejoin
	checkpointing checkpointing
	reports       reports
	leading       leading
	stall         stall
}

func newProtected(e *Engine, c *Config) *protected {
	p := &protected{e: e, protocol: c.Protocol}
	p.rejoin = newRejoin(p, c)
	p.checkpointing.p = p
	p.reports = newReports(p, c)
	p.leading = leading{p: p, meter: lead.NewMeter()}
	return p
}

// viewChanged processes a new view, which follows the view before.
func (p *protected) viewChanged(before view.View) {
	p.leading.viewChanged(before)
	p.e.addFlows(before)
	p.e.apply(p.protocol.View(*p.view()))
	p.e.queryAll(noRank)
	p.e.relieve()
	p.arm()
}

// tick processes a tick.
func (p *protected) tick() {
	out := p.protocol.Tick()
	p.rejoin.requestMore()
	if len(out.Send) > 0 || len(p.rejoin.postponed) > 0 {
		p.arm()
	}
	p.e.apply(out)
	p.e.relieve()
	p.leading.ask()
	p.reviewStall()
}

// close releases the files of p.
func (p *protected) close() {
	p.rejoin.log.Close()
	if d := p.checkpointing.state; d != nil {
		d.Discard()
	}
}

// logCompleted is called once this process, which was new, has its rank's complete message log.
func (p *protected) logCompleted() {
	p.e.markLogComplete()
	p.e.recordFinished()
}

// The parts of a protected reach the engine by the following methods.

// self returns this process.
func (p *protected) self() view.Process { return p.e.self }

// view returns the present view of the job.
func (p *protected) view() *view.View { return &p.e.view }

// now returns the reading of the engine's clock.
func (p *protected) now() time.Duration { return p.e.clock() }

// lock takes the engine's mutex, for calls from other goroutines and after unlock.
func (p *protected) lock() { p.e.mu.Lock() }

// unlock releases the engine's mutex.
func (p *protected) unlock() { p.e.mu.Unlock() }

// err returns the reason why the engine has stopped, or nil.
func (p *protected) err() error { return p.e.err }

// fail stops the engine.
func (p *protected) fail(err error) { p.e.fail(err) }

// await waits until done returns true. The mutex is not held while it sleeps.
func (p *protected) await(w *waiter, done func() bool) error { return p.e.await(w, done) }

// arm schedules a tick.
func (p *protected) arm() { p.e.armTick() }

// armed reports whether a tick is scheduled.
func (p *protected) armed() bool { return p.e.ticking }

// wakeFlush wakes the goroutine that waits in Flush, if any.
func (p *protected) wakeFlush() { p.e.flush.wake() }

// background runs f in a goroutine that Close waits for.
func (p *protected) background(f func()) { p.e.running.Go(f) }

// queue queues a frame for a process.
func (p *protected) queue(to view.Process, f frame.Frame) {
	p.e.enqueue(protection.Envelope{To: to, Frame: f})
}

// queued returns the number of frames that are queued for a process.
func (p *protected) queued(to view.Process) int { return len(p.e.outlet(to).queue) }

// unreceived returns the number of bytes of messages that no receive has matched.
func (p *protected) unreceived() (bytes int) {
	for _, b := range p.e.mailboxes {
		for i := range b.unexpected {
			bytes += b.unexpected[i].size()
		}
	}
	return bytes
}

// programWaits reports whether a goroutine of the program waits in a call, or may be about to wait.
func (p *protected) programWaits() bool {
	return len(p.e.sleepers) > 0 || p.e.poller.spinning || p.e.loans > 0
}

// flowLimit is the number of bytes that may be queued, or kept for processes that lack them, before
// a send of an engine with a protocol waits. A higher limit costs memory and hides slow links; a
// lower limit makes every sender wait for the slowest replica.
var flowLimit = 64 << 20 // a variable for tests

// load is the number of bytes that flowLimit limits. e.mu is held.
func (e *Engine) load() int { return e.queued + e.protocol.Retained() }

// relieve ends the waits of sends once the load has fallen below flowLimit. It is called while
// frames are written, so it sends none. e.mu is held.
func (e *Engine) relieve() {
	if len(e.stalled) > 0 && e.load() < flowLimit {
		for _, h := range e.stalled {
			h.full = false
			e.settleHeld(h)
		}
		clear(e.stalled)
		e.stalled = e.stalled[:0]
	}
	e.flush.wake()
}

// protect sends m, whose payload belongs to the protocol from now on.
func (e *Engine) protect(m protection.Message) {
	if m.Dest != e.self.Rank && usedAgain(m.Payload) {
		e.lent[&m.Payload[0]] = 1
	}
	if e.protocol.Retained() <= directLoad {
		e.writes = m.Dest
	}
	e.protected.leading.step()
	e.flows[m.Dest].sent.add(len(m.Payload))
	e.apply(e.protocol.Send(m))
	e.writeTo(m.Dest)
}

// directLoad bounds the bytes of this process's messages that other processes may lack when a send
// writes its frames itself. It is less than the system buffers for a connection, so the send does
// not wait for a hanging replica.
const directLoad = 32 << 10

// noRank takes the place of a rank where there is none.
const noRank = -1

// usedAgain reports whether a payload's memory is worth reusing.
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

// releasePayload removes a user of a payload. The memory of a payload without users is reused.
func (e *Engine) releasePayload(payload []byte) {
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
