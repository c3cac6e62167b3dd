package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A takeover is how far this process is on its way from replica to master.
//
//	replica --- view ---> promoted, syncing --- all answered ---> decider
//
// Each step is taken once; a process that is master never stops being it while
// it is live.
type takeover struct {
	promoted bool   // the view has named this process master
	syncing  bool   // and someone has not answered yet
	awaited  []bool // by replica: its SyncReply is still to come
	asked    []bool // as a replica, by replica: it may be sent a SyncReply
}

// newTakeover returns the state of a replica. Replica 0 takes over from nobody
// and never asks; after its channel was reopened it may be answered all the
// same.
func newTakeover(replicas int) takeover {
	t := takeover{awaited: make([]bool, replicas), asked: make([]bool, replicas)}
	t.asked[0] = true
	return t
}

// grow makes room for so many replicas.
func (t *takeover) grow(replicas int) {
	t.awaited, t.asked = grown(t.awaited, replicas), grown(t.asked, replicas)
}

// promote begins the takeover when the view says so, once: what has piled up in
// the backup table goes out, and the other replicas are asked what they hold.
func (p *Protocol) promote() (begun bool) {
	t := &p.takeover
	if t.promoted || !p.v.IsMaster(p.self) || p.partial() {
		return false
	}
	t.promoted, t.syncing = true, true
	p.flush()
	for _, q := range p.others {
		t.awaited[q.Replica] = true
		p.emit(q, p.control(channel.Sync, 0, 0, nil))
	}
	return true
}

// advance takes the steps of the takeover that are possible now, and makes
// stable what waited only for processes that are not live any more.
func (p *Protocol) advance() {
	t := &p.takeover
	if !t.promoted {
		return
	}
	if t.syncing && !p.awaiting() {
		t.syncing = false
		for _, h := range p.decisions.inOrder() {
			p.propose(h)
		}
		p.answerRecalls()
	}
	if !t.syncing {
		for _, h := range p.decisions.inOrder() {
			p.settle(h)
		}
	}
}

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
func (p *Protocol) receiveSync(from view.Process) error {
	if from.Replica > p.self.Replica {
		return fmt.Errorf("cannot be master while %v is live", p.self)
	}
	p.takeover.asked[from.Replica] = true
	p.answerSync(from)
	return nil
}

// answerSync tells q what is held here, if q has asked and is the master. An
// answer means that nobody else's determinants will be taken, so it must not
// come before this process's own view says so.
func (p *Protocol) answerSync(q view.Process) {
	if m, ok := p.v.Master(p.self.Rank); ok && m == q && p.takeover.asked[q.Replica] {
		p.emit(q, p.control(channel.SyncReply, 0, 0, encodeHeld(p.decisions.inOrder())))
	}
}

// receiveSyncReply merges what a replica holds: outcomes that are held here too
// it need not be told; those that are stable it may forget; others are new, and
// only a takeover can bring them.
func (p *Protocol) receiveSyncReply(from view.Process, f channel.Frame) error {
	t, d := &p.takeover, &p.decisions
	if !t.promoted {
		return fmt.Errorf("answers a question that was not asked")
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
	return nil
}

// merge takes note that a replica holds det.
func (p *Protocol) merge(from view.Process, det protection.Determinant) {
	h := p.decisions.held[det.Point]
	switch {
	case h == nil && p.decisions.has(det.Point):
		p.emit(from, p.control(channel.Stable, det.Context, det.Index, nil))
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
	if p.takeover.promoted {
		p.emit(q, p.control(channel.Sync, 0, 0, nil))
		if p.takeover.syncing {
			return
		}
		for _, h := range p.decisions.inOrder() {
			if !h.has[q.Replica] {
				p.emit(q, p.control(channel.Determinant, h.Context, h.Index, h.Outcome))
			}
		}
		return
	}
	p.answerSync(q)
}
