package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A takeover is how far this process is on its way from replica to master. It is
// taken once in each term: the term of a master is the epoch in which the view
// began to name it, so that one whose mastership has moved away and come back has
// a new term, even if it has missed the views in between.
//
//	replica --- view ---> syncing --- all answered ---> settling --- all is stable ---> decider
//	   ^                     |                             |                               |
//	   +--- view, which names another ---------------------+-------------------------------+
//
// What predecessors have decided, and not everybody has yet, the program does not see before it is
// stable. Nothing else is decided meanwhile: two outcomes could depend on each other, as those
// of two receives do that both take any message.
type takeover struct {
	term     uint64   // 0: the view names another master
	syncing  bool     // someone has not answered yet
	settling bool     // something of a predecessor's is not stable yet
	awaited  []bool   // by replica: its SyncReply of this term is still to come
	asked    []uint64 // as a replica, by replica: the last term in which it has asked
}

// newTakeover returns the state of a replica. The first master takes over from
// nobody and never asks; after its channel was reopened it is answered all the same.
func newTakeover(replicas int) takeover {
	t := takeover{awaited: make([]bool, replicas), asked: make([]uint64, replicas)}
	t.asked[0] = firstTerm
	return t
}

// grow makes room for so many replicas.
func (t *takeover) grow(replicas int) {
	t.awaited, t.asked = grown(t.awaited, replicas), grown(t.asked, replicas)
}

// firstTerm is the term of replica 0, which is master when a job begins.
const firstTerm = 1

// promoted reports whether the view names this process master.
func (t *takeover) promoted() bool { return t.term != 0 }

// termOf returns the term of the own rank's master.
func (p *Protocol) termOf() uint64 { return p.v.Since[p.self.Rank] }

// promote begins the takeover when the view says so, once in a term: what has
// piled up in the backup table goes out, and the other replicas are asked what
// they hold. It ends the term when the view names another master: from then on
// this process neither decides nor transmits.
func (p *Protocol) promote() (begun bool) {
	t := &p.takeover
	if !p.v.IsMaster(p.self) {
		t.term, t.syncing, t.settling = 0, false, false
		return false
	}
	if t.term == p.termOf() || p.partial() {
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

// advance takes the steps of the takeover that are possible now, and makes
// stable what waited only for processes that are not live any more.
func (p *Protocol) advance() {
	t := &p.takeover
	if !t.promoted() {
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
		p.welcome()
	}
}

// settled ends the takeover when all is stable that predecessors have decided: nothing else is held until then.
func (p *Protocol) settled() { p.takeover.settling = p.takeover.settling && p.decisions.unstable > 0 }

// awaiting reports whether a live replica has still to answer Sync.
func (p *Protocol) awaiting() bool {
	for _, q := range p.others {
		if p.takeover.awaited[q.Replica] {
			return true
		}
	}
	return false
}

// receiveSync answers a new master, now or as soon as the view names it.
func (p *Protocol) receiveSync(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("asks in no term")
	}
	p.takeover.asked[from.Replica] = f.Seq
	p.answerSync(from)
	return nil
}

// answerSync tells q what is held here, if q is the master and has asked in this
// term. An answer means that nobody else's determinants will be taken, and no own
// ones made, before the next term. So it must not come before this process's own
// view says so.
func (p *Protocol) answerSync(q view.Process) {
	asked := p.takeover.asked[q.Replica]
	if q != p.self && p.v.IsMaster(q) && asked == p.termOf() {
		p.emit(q, p.control(frame.SyncReply, 0, asked, encodeHeld(p.decisions.inOrder())))
	}
}

// receiveSyncReply merges what a replica holds: outcomes that are held here too
// it need not be told; those that are stable it may forget; others are new, and
// only a takeover can bring them. An answer of an earlier term is worth nothing:
// another may have been master since.
func (p *Protocol) receiveSyncReply(from view.Process, f frame.Frame) error {
	t, d := &p.takeover, &p.decisions
	if f.Seq == 0 {
		return fmt.Errorf("answers a question of no term")
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
			return fmt.Errorf("holds a determinant of point %v, which was not proposed", det.Point)
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

// merge takes note that a replica holds det.
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

// reconcile makes good what the channel to a replica of the own rank may have
// lost. A master asks again, also when it knows all: the answer shows which
// Stable frames the replica missed. A replica tells the master again what it
// holds, which is all that it can have acknowledged and that still matters.
func (p *Protocol) reconcile(q view.Process) {
	if p.takeover.promoted() {
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
