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

// newTakeover returns the state of a replica. The first master has no predecessor and does not ask; after
// its channel was reopened it is answered nevertheless.
func newTakeover(replicas int) takeover {
	t := takeover{awaited: make([]bool, replicas), asked: make([]uint64, replicas)}
	t.asked[0] = firstTerm
	return t
}

// grow makes room for the given number of replicas.
func (t *takeover) grow(replicas int) {
	t.awaited, t.asked = grown(t.awaited, replicas), grown(t.asked, replicas)
}

// firstTerm is the term of replica 0, which is master when a job begins.
const firstTerm = 1

// isMaster reports whether the view names this process master.
func (t *takeover) isMaster() bool { return t.term != 0 }

// termOf returns the term of this rank's master.
func (p *Protocol) termOf() uint64 { return p.v.Since[p.self.Rank] }

// promote starts the takeover when the view requires it, once in a term: it sends the contents of the
// backup table and asks the other replicas for the outcomes that they hold. It ends the term when the view
// names another master; from then on this process neither decides nor transmits.
func (p *Protocol) promote() (begun bool) {
	t := &p.takeover
	if !p.v.IsMaster(p.self) {
		t.term, t.syncing, t.settling = 0, false, false
		return false
	}
	if t.term == p.termOf() || p.lacksLog() {
		return false
	}
	t.term, t.syncing, t.settling = p.termOf(), true, true
	p.flush()
	for _, q := range p.others {
		t.awaited[q.Replica] = true
		p.emit(q, p.control(frame.Sync, 0, t.term, nil))
	}
	return true
}

// advance takes the possible steps of the takeover. It makes outcomes stable that waited only for
// processes that are no longer live.
func (p *Protocol) advance() {
	t := &p.takeover
	if !t.isMaster() {
		return
	}
	if t.syncing && !p.awaiting() {
		t.syncing = false
		for _, h := range p.decisions.inOrder() {
			p.propose(h)
		}
	}
	if !t.syncing {
		for _, h := range p.decisions.inOrder() {
			p.settle(h)
		}
		p.settled()
		p.sendUpToDate()
	}
}

// settled ends the takeover when all predecessors' decisions are stable. Until then no other outcome is
// held.
func (p *Protocol) settled() { p.takeover.settling = p.takeover.settling && p.decisions.unstable > 0 }

// awaiting reports whether a live replica has not answered Sync.
func (p *Protocol) awaiting() bool {
	for _, q := range p.others {
		if p.takeover.awaited[q.Replica] {
			return true
		}
	}
	return false
}

// receiveSync answers a new master, at once or as soon as the view names it.
func (p *Protocol) receiveSync(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("sync frame without a term")
	}
	p.takeover.asked[from.Replica] = f.Seq
	p.answerSync(from)
	return nil
}

// answerSync tells q which outcomes are held here, if q is the master and has asked in this term. An
// answer promises that this process accepts no other master's determinants, and makes none itself, before
// the next term. So it must not be sent before this process's own view names q.
func (p *Protocol) answerSync(q view.Process) {
	asked := p.takeover.asked[q.Replica]
	if q != p.self && p.v.IsMaster(q) && asked == p.termOf() {
		p.emit(q, p.control(frame.SyncReply, 0, asked, encodeHeld(p.decisions.inOrder())))
	}
}

// receiveSyncReply merges the outcomes that a replica holds. For an outcome that is held here too, the
// replica need not get it again. If an outcome is stable, the replica may drop it. Other outcomes are
// new, and can arrive only in a takeover. An answer of an earlier term is ignored, since there may have
// been another master in between.
func (p *Protocol) receiveSyncReply(from view.Process, f frame.Frame) error {
	t, d := &p.takeover, &p.decisions
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
		p.merge(from, det)
	}
	t.awaited[from.Replica] = false
	p.advance()
	p.answerRecalls()
	return nil
}

// merge records that a replica holds det.
func (p *Protocol) merge(from view.Process, det protection.Determinant) {
	h := p.decisions.held[det.Point]
	switch {
	case h == nil && p.decisions.has(det.Point):
		p.emit(from, p.control(frame.Stable, det.Context, det.Index, nil))
		return
	case h == nil:
		p.decisions.record(det.Point)
		h = p.decisions.hold(det, false)
	}
	h.has[from.Replica] = true
}

// reconcile repairs losses of the channel to a replica of this rank. A master asks again, even if it
// knows all: the answer shows which Stable frames the replica missed. A replica reports its
// outcomes to the master again, including all that it may have acknowledged and that still matter.
func (p *Protocol) reconcile(q view.Process) {
	if p.takeover.isMaster() {
		p.emit(q, p.control(frame.Sync, 0, p.takeover.term, nil))
		if p.takeover.syncing {
			return
		}
		for _, h := range p.decisions.inOrder() {
			if !h.has[q.Replica] {
				p.emit(q, p.control(frame.Determinant, h.Context, h.Index, h.Outcome))
			}
		}
		return
	}
	p.answerSync(q)
}
