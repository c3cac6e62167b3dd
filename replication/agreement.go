package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An agreement is this process's part in the agreement of its rank's replicas on the outcomes of nondeterministic
// calls: the outcomes, the state of its takeover as master, and the replicas that are set aside.
type agreement struct {
	*core
	decisions decisions
	takeover  takeover
	asides    asides
}

func newAgreement(c *core) *agreement {
	a := &agreement{core: c, decisions: newDecisions()}
	a.grow()
	// The first master has no predecessor and does not send Sync. Replicas nevertheless answer it after its
	// channel was reopened.
	a.takeover.asked[0] = firstTerm
	if c.active() && c.v.IsMaster(c.self) && c.term() == firstTerm {
		a.takeover.term = firstTerm
	}
	return a
}

// grow makes room for the replicas of the view.
func (a *agreement) grow() {
	a.decisions.grow(a.v.R)
	a.takeover.grow(a.v.R)
	a.asides.grow(a.v.R)
}

// decider reports whether this process decides: it is the master, and all replicas know its predecessors'
// decisions.
func (a *agreement) decider() bool { return a.leads() && !a.takeover.settling }

// leads reports whether this process makes outcomes stable: it is the master and knows its predecessors'
// decisions.
func (a *agreement) leads() bool { return a.isMaster() && !a.takeover.syncing }

// decide proposes an outcome of this process to the other replicas.
func (a *agreement) decide(d protection.Determinant) {
	a.decisions.record(d.Point)
	h := a.decisions.hold(d, false)
	a.propose(h)
	a.settle(h)
}

// propose sends an outcome to the live replicas that may lack it.
func (a *agreement) propose(h *held) {
	for _, q := range a.others {
		a.offer(h, q)
	}
}

// offer sends an outcome to q unless q has it.
func (a *agreement) offer(h *held, q view.Process) {
	if !h.has[q.Replica] {
		a.emit(q, a.control(frame.Determinant, h.Context, h.Index, h.Outcome))
	}
}

// offerAll sends q the held outcomes that it may lack.
func (a *agreement) offerAll(q view.Process) {
	for _, h := range a.decisions.inOrder() {
		a.offer(h, q)
	}
}

// settle makes an outcome stable if every live replica has it, except exempt ones. The programs may then see it,
// here and at the replicas. The outcome is no longer held once all live replicas have it.
func (a *agreement) settle(h *held) {
	spared := false
	for _, q := range a.others {
		if !h.has[q.Replica] {
			if !a.exempts(q) {
				return
			}
			spared = true
		}
	}
	if spared {
		a.settleWithout(h)
		return
	}
	a.decisions.drop(h)
	a.show(h)
	for _, q := range a.others {
		a.emit(q, a.control(frame.Stable, h.Context, h.Index, nil))
	}
}

// show passes a stable outcome to the program, once.
func (a *agreement) show(h *held) {
	if !h.shown {
		a.out.Decided = append(a.out.Decided, h.Determinant)
	}
	h.shown = true
}

// receiveDeterminant processes an outcome from the master. An outcome from another replica comes from a former
// master that does not know of its successor. It is ignored; the sender holds the outcome and reports it to the
// new master. A new master proposes only after this process has answered its Sync and so accepted it as master.
//
// An outcome that is known to be stable may arrive again from a new master that does not know this. The outcome is
// then held until the master knows, because held outcomes are reported again when an acknowledgement may have been
// lost.
func (a *agreement) receiveDeterminant(from view.Process, f frame.Frame) error {
	if !a.v.IsMaster(from) {
		return nil
	}
	d := &a.decisions
	det := protection.Determinant{Point: protection.Point{Context: f.Context, Index: f.Seq}, Outcome: f.Payload}
	if err := d.check(det); err != nil {
		return err
	}
	if d.held[det.Point] == nil {
		if d.retained+len(det.Outcome)+heldCost*(len(d.held)+1) > maxHeldBytes || d.spans >= maxSpans {
			return fmt.Errorf("too many unstable determinants: %d in %d ranges", len(d.held), d.spans)
		}
		first := d.record(det.Point)
		d.hold(det, !first)
	}
	a.takeover.asked[from.Replica] = a.term() // a master that decides need not ask
	a.emit(from, a.control(frame.DeterminantAck, f.Context, f.Seq, nil))
	return nil
}

// receiveDeterminantAck records that a replica has an outcome. The record stays valid after this process ceases to
// be master. The outcome is settled here only if this process decides.
func (a *agreement) receiveDeterminantAck(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !a.decisions.has(pt) {
		return fmt.Errorf("acknowledgement of a determinant that was not proposed")
	}
	if h := a.decisions.held[pt]; h != nil {
		h.has[from.Replica] = true
		if a.leads() {
			a.settle(h)
			a.settled()
			a.sendUpToDate()
		}
	}
	return nil
}

// receiveStable shows a stable outcome, and drops it if every live replica has it. A message of a former
// master is ignored: its successor may have proposed the outcome again and rely on it being held here.
func (a *agreement) receiveStable(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !a.v.IsMaster(from) {
		return nil
	}
	if !a.decisions.has(pt) {
		return fmt.Errorf("stable frame for a determinant that was not proposed")
	}
	if h := a.decisions.held[pt]; h != nil {
		if !f.Sync {
			a.decisions.drop(h)
		}
		a.show(h)
	}
	return nil
}

// replay shows an outcome of the log. If this process already holds the determinant, the master's Stable frame
// will show the outcome.
func (a *agreement) replay(det protection.Determinant) error {
	d := &a.decisions
	if err := d.check(det); err != nil {
		return err
	}
	if d.spans >= maxSpans {
		return fmt.Errorf("too many ranges of outcomes: %d", d.spans)
	}
	if d.record(det.Point) {
		a.out.Decided = append(a.out.Decided, det)
	}
	return nil
}
