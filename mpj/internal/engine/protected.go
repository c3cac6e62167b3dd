package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/lead"
)

// A protected is the part of an engine that exists only with a protection protocol. It passes the
// protocol every send, arrival, outcome and view, and carries out what the protocol returns. Each of
// its concerns has a type of its own, which reaches the engine only by the methods at the end of this
// file. The engine's mutex guards a protected and its parts, and is held at all calls of their
// methods.
type protected struct {
	e        *Engine
	protocol protection.Protocol
	outputs  outputs // of the protocol, not carried out yet

	decisions     decisions     // outcomes of nondeterministic calls
	windows       windows       // ends of sends
	notices       notices       // match notices
	retained      retained      // payloads in use
	finish        finish        // Finalize
	rejoin        rejoin        // replay of the message log
	checkpointing checkpointing // checkpoints of the program
	leading       leading       // lead over the master
	stall         stall         // waiting time of outcomes
	reports       reports       // callbacks
}

func newProtected(e *Engine, c *Config) *protected {
	p := &protected{e: e, protocol: c.Protocol}
	p.rejoin = newRejoin(p, c)
	p.setReplaying(!p.rejoin.complete)
	p.checkpointing.p = p
	p.reports = newReports(p, c)
	p.leading = leading{p: p, meter: lead.NewMeter()}
	p.windows = newWindows(p)
	p.notices = notices{p: p, early: make(map[messageID]struct{}), asked: make(map[messageID][]view.Process)}
	p.retained = retained{p: p, users: make(map[*byte]int)}
	p.finish.p = p
	p.decisions = newDecisions(p)
	p.arm() // the view may already name this process as master
	return p
}

// View processes a new view, which follows the view before.
func (p *protected) View(before view.View) {
	p.leading.viewChanged(before)
	p.windows.viewChanged(before)
	p.apply(p.protocol.View(*p.view()))
	p.notices.queryAll(noRank)
	p.relieve()
	p.arm()
}

// arrived processes a frame of another process.
func (p *protected) arrived(from view.Process, f *frame.Frame) error {
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
	if f.Kind == frame.MessageLog {
		p.rejoin.countReplayed(out.Deliver)
	}
	p.apply(out)
	p.relieve()
	p.arm()
	if f.Kind == frame.MessageLog {
		p.checkpointing.resuming.wake()
	}
	return nil
}

// Tick processes a tick.
func (p *protected) Tick() {
	out := p.protocol.Tick()
	p.rejoin.requestMore()
	if len(out.Send) > 0 || len(p.rejoin.postponed) > 0 {
		p.arm()
	}
	p.apply(out)
	p.relieve()
	p.leading.ask()
	p.reviewStall()
}

// Close releases the files of p.
func (p *protected) Close() {
	p.lock()
	defer p.unlock()
	p.rejoin.log.Close()
	if d := p.checkpointing.state; d != nil {
		d.Discard()
	}
}

// logCompleted is called once this process, which was new, has its rank's complete message log.
func (p *protected) logCompleted() {
	p.setReplaying(false)
	p.windows.reportAll()
	p.recordFinished()
}

// load is the number of bytes that flowLimit limits.
func (p *protected) load() int { return p.queuedBytes() + p.protocol.Retained() }

// protect sends m, whose payload belongs to the protocol from now on.
func (p *protected) protect(m protection.Message) {
	if m.Dest != p.self().Rank {
		p.retained.add(m.Payload)
	}
	if p.protocol.Retained() <= directLoad {
		p.deferWrites(m.Dest)
	}
	p.leading.step()
	p.windows.byRank[m.Dest].sent.add(len(m.Payload))
	p.apply(p.protocol.Send(m))
	p.writeTo(m.Dest)
}

// directLoad bounds the bytes of this process's messages that other processes may lack when a send
// writes its frames itself. It is less than the system buffers for a connection, so the send does
// not wait for a hanging replica.
const directLoad = 32 << 10

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

// wait waits until r is done. The mutex is not held while it sleeps.
func (p *protected) wait(r *Request) error { return p.e.wait(r) }

// outcome returns the outcome that the decider chooses for w now, or false if w waits.
func (p *protected) outcome(w *waiter) ([]uint64, bool) { return p.e.outcome(w) }

// arm schedules a tick.
func (p *protected) arm() { p.e.armTick() }

// armed reports whether a tick is scheduled.
func (p *protected) armed() bool { return p.e.tick.armed }

// wakeFlush wakes the goroutine that waits in Flush, if any.
func (p *protected) wakeFlush() { p.e.flush.wake() }

// background runs f in a goroutine that Close waits for.
func (p *protected) background(f func()) { p.e.running.Go(f) }

// queue queues a frame for a process, unless the process is not live.
func (p *protected) queue(to view.Process, f frame.Frame) {
	if p.e.err != nil || !p.e.view.Live(to) {
		p.retained.release(f.Payload)
		return
	}
	p.e.conns.outlet(to).put(parcel{Frame: f})
}

// deferWrites leaves the writing of frames to a rank to this goroutine, until it calls writeTo.
func (p *protected) deferWrites(rank int) { p.e.conns.deferWrites(rank) }

// writeTo writes the frames that deferWrites left. The mutex is not held while it writes.
func (p *protected) writeTo(rank int) { p.e.conns.writeTo(rank) }

// relieve ends the waits that the present load allows to end.
func (p *protected) relieve() { p.e.relieve() }

// queued returns the number of frames that are queued for a process.
func (p *protected) queued(to view.Process) int { return len(p.e.conns.outlet(to).queue) }

// queuedBytes returns the number of bytes that are queued for all processes.
func (p *protected) queuedBytes() int { return p.e.conns.queued }

// destinations returns the processes to which this process has sent frames.
func (p *protected) destinations() (all []view.Process) {
	for _, o := range p.e.conns.outlets {
		if o != nil {
			all = append(all, o.to)
		}
	}
	return all
}

// toleratedHang returns the silence that the job tolerates.
func (p *protected) toleratedHang() time.Duration { return p.e.conns.toleratedHang }

// copyOf returns a copy of payload in memory of the engine's pool.
func (p *protected) copyOf(payload []byte) []byte { return p.e.payloads.copyOf(payload) }

// room returns size bytes, with arbitrary contents, of the engine's pool.
func (p *protected) room(size int) []byte { return p.e.payloads.room(size) }

// giveBack gives memory back to the pool.
func (p *protected) giveBack(payload []byte) { p.e.payloads.giveBack(payload) }

// mailbox returns the mailbox of a context.
func (p *protected) mailbox(context uint32) *mailbox { return p.e.mailbox(context) }

// mailboxes returns the mailboxes by context.
func (p *protected) mailboxes() map[uint32]*mailbox { return p.e.mailboxes }

// unreceived returns the number of bytes of messages that no receive has matched.
func (p *protected) unreceived() (bytes int) {
	for _, b := range p.mailboxes() {
		for m := range b.Messages() {
			bytes += m.Size
		}
	}
	return bytes
}

// recordFinished records the ranks that have finalized, after the view or rejoin.complete has changed.
func (p *protected) recordFinished() { p.e.recordFinished() }

// someFinished reports whether any other rank has finalized.
func (p *protected) someFinished() bool { return p.e.finished.any }

// setReplaying records whether other processes still send this process messages of finished ranks.
func (p *protected) setReplaying(replaying bool) { p.e.finished.replaying = replaying }

// programWaits reports whether a goroutine of the program waits in a call, or may be about to wait.
func (p *protected) programWaits() bool {
	return p.e.conns.poller.waits()
}
