package engine

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Loop is what a Transport needs from its engine. The engine's mutex, which also guards the
// transport, is held at all calls except those of Lock, Go, Self and Now.
type Loop struct{ e *Engine }

// Self returns this process.
func (l Loop) Self() view.Process { return l.e.self }

// View returns the present view of the job.
func (l Loop) View() *view.View { return &l.e.view }

// Now returns the reading of the engine's clock.
func (l Loop) Now() time.Duration { return l.e.clock() }

// Lock takes the engine's mutex, for calls from other goroutines and after Unlock.
func (l Loop) Lock() { l.e.mu.Lock() }

// Unlock releases the engine's mutex.
func (l Loop) Unlock() { l.e.mu.Unlock() }

// Err returns the reason why the engine has stopped, or nil.
func (l Loop) Err() error { return l.e.err }

// Fail stops the engine.
func (l Loop) Fail(err error) { l.e.fail(err) }

// Await waits until done returns true, and calls it whenever w is woken. The mutex is not held while
// Await sleeps.
func (l Loop) Await(w *Waiter, done func() bool) error { return l.e.await(w, done) }

// Wait waits until r is done. The mutex is not held while it sleeps.
func (l Loop) Wait(r *Request) error { return l.e.wait(r) }

// Outcome returns the outcome that a process which decides alone chooses for w now, or false if w
// waits. The outcome is valid until the next call.
func (l Loop) Outcome(w *Waiter) ([]uint64, bool) { return l.e.outcome(w) }

// Arm schedules a tick, unless one is scheduled.
func (l Loop) Arm() { l.e.armTick() }

// Armed reports whether a tick is scheduled.
func (l Loop) Armed() bool { return l.e.tick.armed }

// WakeFlush wakes the goroutine that waits in Flush, if any.
func (l Loop) WakeFlush() { l.e.flush.Wake() }

// Go runs f in a goroutine that Close waits for.
func (l Loop) Go(f func()) { l.e.running.Go(f) }

// Queue queues a frame for a process. It returns false if the process is not live or the engine has
// stopped.
func (l Loop) Queue(to view.Process, f frame.Frame) bool {
	if l.e.err != nil || !l.e.view.Live(to) {
		return false
	}
	l.e.conns.outlet(to).Put(Parcel{Frame: f})
	return true
}

// DeferWrites leaves the writing of frames to a rank to this goroutine, until it calls WriteTo.
func (l Loop) DeferWrites(rank int) { l.e.conns.deferWrites(rank) }

// WriteTo writes the frames that DeferWrites left. The mutex is not held while it writes.
func (l Loop) WriteTo(rank int) { l.e.conns.writeTo(rank) }

// Relieve ends the waits that the present load allows to end, also those of the transport.
func (l Loop) Relieve() { l.e.relieve() }

// QueuedBytes returns the number of bytes that are queued for all processes.
func (l Loop) QueuedBytes() int { return l.e.conns.queued }

// Destinations returns the processes to which this process has sent frames.
func (l Loop) Destinations() (all []view.Process) {
	for _, o := range l.e.conns.outlets {
		if o != nil {
			all = append(all, o.to)
		}
	}
	return all
}

// ToleratedHang returns the silence that the job tolerates.
func (l Loop) ToleratedHang() time.Duration { return l.e.conns.toleratedHang }

// CopyOf returns a copy of payload in memory of the engine's pool.
func (l Loop) CopyOf(payload []byte) []byte { return l.e.payloads.copyOf(payload) }

// Room returns size bytes with arbitrary contents from the engine's pool.
func (l Loop) Room(size int) []byte { return l.e.payloads.room(size) }

// GiveBack gives memory back to the pool.
func (l Loop) GiveBack(payload []byte) { l.e.payloads.giveBack(payload) }

// Mailbox returns the mailbox of a context, and creates it if necessary.
func (l Loop) Mailbox(context uint32) *Mailbox { return l.e.mailbox(context) }

// Mailboxes returns the mailboxes by context.
func (l Loop) Mailboxes() map[uint32]*Mailbox { return l.e.mailboxes }

// RecordFinished records the ranks that have finalized in the present view.
func (l Loop) RecordFinished() { l.e.recordFinished() }

// SetReplaying records whether other processes still send this process messages of ranks that have
// finalized.
func (l Loop) SetReplaying(replaying bool) { l.e.finished.replaying = replaying }

// SomeFinished reports whether any other rank has finalized.
func (l Loop) SomeFinished() bool { return l.e.finished.any }

// ProgramWaits reports whether a goroutine of the program waits in a call, or may be about to wait.
func (l Loop) ProgramWaits() bool { return l.e.conns.poller.waits() }

// LendOut returns an empty slice of the engine's pool with room for size bytes.
func (l Loop) LendOut(size int) []byte { return l.e.payloads.lendOut(size) }

// Outlet returns the outlet to a process, and creates it if necessary.
func (l Loop) Outlet(to view.Process) *Outlet { return l.e.conns.outlet(to) }

// Advance makes progress on the rings.
func (l Loop) Advance() { l.e.conns.poller.advance() }

// Leave lets the engine continue the transfers that a call leaves pending when it returns.
func (l Loop) Leave() { l.e.conns.poller.leave() }

// BodyPending records one more payload that waits for its receive or is being transferred.
func (l Loop) BodyPending() { l.e.conns.poller.bodies++ }

// BodyDone records that one of these payloads is done.
func (l Loop) BodyDone() {
	l.e.conns.poller.bodies--
	l.e.flush.Wake()
}

// Bodies returns the number of these payloads.
func (l Loop) Bodies() int { return l.e.conns.poller.bodies }

// AlsoDo makes progress call next, once in each pass, until next returns true.
func (l Loop) AlsoDo(next func() (done bool)) {
	l.e.conns.poller.fetches = append(l.e.conns.poller.fetches, next)
}

// Unattended reports whether only the pump makes progress, because the program makes no call.
func (l Loop) Unattended() bool { return l.e.conns.poller.unattended() }
