package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A takeover is the progress of this process from replica to master. It happens once in each term. The term of a
// master is the epoch in which the view first named it. So a process that becomes master again has a new term,
// even if it has missed the views in between.
//
//	replica --- view ---> syncing --- all answered ---> settling --- all is stable ---> decider
//	   ^                     |                             |                               |
//	   +--- view that names another master ----------------+-------------------------------+
//
// The program sees predecessors' decisions only when they are stable. Until then the process decides nothing else,
// because two outcomes can depend on each other, such as the outcomes of two receives that match any message.
type takeover struct {
	term     uint64   // zero if the view names another master
	syncing  bool     // a replica has not answered yet
	settling bool     // a predecessor's outcome is not stable yet
	awaited  []bool   // per replica: whether its SyncReply of this term is missing
	asked    []uint64 // per replica: the last term in which it asked this process
}

// grow makes room for the given number of replicas.
func (t *takeover) grow(replicas int) {
	t.awaited, t.asked = grown(t.awaited, replicas), grown(t.asked, replicas)
}

// firstTerm is the term of replica 0, which is master when a job begins.
const firstTerm = 1

// isMaster reports whether the view names this process master.
func (a *agreement) isMaster() bool { return a.takeover.term != 0 }

// changeTerm begins a term when the view requires it, and reports whether it did. It ends the term when
// the view names another master; from then on this process neither decides nor transmits.
func (a *agreement) changeTerm() (begun bool) {
	t := &a.takeover
	if !a.v.IsMaster(a.self) {
		t.term, t.syncing, t.settling = 0, false, false
		return false
	}
	if t.term == a.term() || a.lacksLog {
		return false
	}
	t.term, t.syncing, t.settling = a.term(), true, true
	return true
}

// ask asks the other replicas, when a term begins, for the outcomes that they hold.
func (a *agreement) ask() {
	for _, q := range a.others {
		a.takeover.awaited[q.Replica] = true
		a.emit(q, a.control(frame.Sync, 0, a.takeover.term, nil))
	}
}

// advance takes the possible steps of the takeover. It also makes outcomes stable that waited only for processes
// that are no longer live.
func (a *agreement) advance() {
	t := &a.takeover
	if !a.isMaster() {
		return
	}
	if t.syncing && !a.awaiting() {
		t.syncing = false
		for _, h := range a.decisions.inOrder() {
			a.propose(h)
		}
	}
	if !t.syncing {
		for _, h := range a.decisions.inOrder() {
			a.settle(h)
		}
		a.settled()
		a.sendUpToDate()
	}
}

// settled ends the takeover when all predecessors' decisions are stable. Until then no other outcome is
// held.
func (a *agreement) settled() { a.takeover.settling = a.takeover.settling && a.decisions.unstable > 0 }

// awaiting reports whether a live replica has not answered Sync.
func (a *agreement) awaiting() bool {
	for _, q := range a.others {
		if a.takeover.awaited[q.Replica] {
			return true
		}
	}
	return false
}

// receiveSync answers a new master, at once or as soon as the view names it.
func (a *agreement) receiveSync(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("sync frame without a term")
	}
	a.takeover.asked[from.Replica] = f.Seq
	a.answerSync(from)
	return nil
}

// answerSync sends q the outcomes that this process holds, if q is the master and has asked in this term. With its
// answer, this process promises not to accept determinants of another master, and not to make determinants itself,
// before the next term. So it must not answer before its own view names q.
func (a *agreement) answerSync(q view.Process) {
	asked := a.takeover.asked[q.Replica]
	if q != a.self && a.v.IsMaster(q) && asked == a.term() {
		a.emit(q, a.control(frame.SyncReply, 0, asked, encodeHeld(a.decisions.inOrder())))
	}
}

// receiveSyncReply merges the outcomes that a replica holds. An outcome that this process also holds need not be
// proposed to the replica again. A stable outcome may be dropped by the replica. Any other outcome is new, and can
// arrive only in a takeover. An answer of an earlier term is ignored, because another process may have been master
// in between.
func (a *agreement) receiveSyncReply(from view.Process, f frame.Frame) error {
	t, d := &a.takeover, &a.decisions
	if f.Seq == 0 {
		return fmt.Errorf("sync reply without a term")
	}
	if f.Seq != t.term {
		return nil
	}
	dets, err := decodeHeld(f.Payload)
	if err != nil {
		return err
	}
	for _, det := range dets {
		if err := d.check(det); err != nil {
			return err
		}
		if !t.awaited[from.Replica] && !d.has(det.Point) {
			return fmt.Errorf("sync reply with a determinant of point %v, which was not proposed", det.Point)
		}
	}
	for _, det := range dets {
		a.merge(from, det)
	}
	t.awaited[from.Replica] = false
	a.advance()
	return nil
}

// merge records that a replica holds det.
func (a *agreement) merge(from view.Process, det protection.Determinant) {
	h := a.decisions.held[det.Point]
	switch {
	case h == nil && a.decisions.has(det.Point):
		a.emit(from, a.control(frame.Stable, det.Context, det.Index, nil))
		return
	case h == nil:
		a.decisions.record(det.Point)
		h = a.decisions.hold(det, false)
	}
	h.has[from.Replica] = true
}

// reconcile repairs losses of the channel to a replica of this rank. A master asks again, even if it lacks no
// outcome, because the answer shows which Stable frames the replica has missed. A replica reports its held
// outcomes to the master again. They include every outcome that it can have acknowledged and that is not stable.
func (a *agreement) reconcile(q view.Process) {
	if a.isMaster() {
		a.emit(q, a.control(frame.Sync, 0, a.takeover.term, nil))
		if !a.takeover.syncing {
			a.offerAll(q)
		}
		return
	}
	a.answerSync(q)
}
