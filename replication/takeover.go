package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A takeover is the progress of this process from replica to master. It happens once in each term. The
// term of a master is the epoch in which the view began to name it. So a process that lost its mastership
// and gets it back has a new term, even if it has missed the views in between.
//
//	replica --- view ---> syncing --- all answered ---> settling --- all is stable ---> decider
//	   ^                     |                             |                               |
//	   +--- view, which names another ---------------------+-------------------------------+
//
// The program sees predecessors' decisions only when they are stable. Until then nothing else is decided,
// because two outcomes could depend on each other, such as those of two receives that match any message.
type takeover struct {
	term     uint64   // 0: the view names another master
	syncing  bool     // a replica has not answered yet
	settling bool     // a predecessor's outcome is not stable yet
	awaited  []bool   // per replica: its SyncReply of this term has not arrived
	asked    []uint64 // when this process is a replica, per replica: the last term in which it asked
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

// ask asks the other replicas, when a term begins, which outcomes they hold.
func (a *agreement) ask() {
	for _, q := range a.others {
		a.takeover.awaited[q.Replica] = true
		a.emit(q, a.control(frame.Sync, 0, a.takeover.term, nil))
	}
}

// advance takes the possible steps of the takeover. It makes outcomes stable that waited only for
// processes that are no longer live.
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

// answerSync tells q which outcomes are held here, if q is the master and has asked in this term. An
// answer promises that this process accepts no other master's determinants, and makes none itself, before
// the next term. So it must not be sent before this process's own view names q.
func (a *agreement) answerSync(q view.Process) {
	asked := a.takeover.asked[q.Replica]
	if q != a.self && a.v.IsMaster(q) && asked == a.term() {
		a.emit(q, a.control(frame.SyncReply, 0, asked, encodeHeld(a.decisions.inOrder())))
	}
}

// receiveSyncReply merges the outcomes that a replica holds. For an outcome that is held here too, the
// replica need not get it again. If an outcome is stable, the replica may drop it. Other outcomes are
// new, and can arrive only in a takeover. An answer of an earlier term is ignored, since there may have
// been another master in between.
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

// reconcile repairs losses of the channel to a replica of this rank. A master asks again, even if it
// knows all: the answer shows which Stable frames the replica missed. A replica reports again to the
// master what it holds, which includes all that it can have acknowledged and that still matters.
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
