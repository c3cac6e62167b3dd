package replication

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// MaxOutcome bounds the bytes of one outcome. The engine's are far below.
const MaxOutcome = 64 << 10

// What frames can make a replica hold.
const (
	maxHeldBytes = 64 << 20 // outcomes that are not stable, heldCost included
	heldCost     = 64       // about what an outcome costs apart from its bytes
	maxSpans     = 1 << 20  // see indexSet
)

// Decisions knows the outcomes of the rank's nondeterministic calls.
type decisions struct {
	replicas int
	known    map[uint32]*indexSet // by context: the points with an outcome
	spans    int                  // in all of known
	// held are the outcomes that are not known to be stable. Of the others
	// only the point is remembered.
	held     map[protection.Point]*held
	retained int // bytes of outcomes held, plus one for each
	unstable int // number of held outcomes that are not marked stable
}

// A held outcome is waiting to become stable.
type held struct {
	protection.Determinant
	has    []bool // by replica: it is known to have this
	shown  bool   // to this process's program, since it was stable before
	stable bool   // this process is master, and has announced it: only replicas that are set aside lack this
}

func newDecisions(replicas int) decisions {
	return decisions{
		replicas: replicas,
		known:    make(map[uint32]*indexSet),
		held:     make(map[protection.Point]*held),
	}
}

// grow makes room for so many replicas.
func (d *decisions) grow(replicas int) {
	d.replicas = replicas
	for _, h := range d.held {
		h.has = grown(h.has, replicas)
	}
}

func (d *decisions) has(pt protection.Point) bool {
	s := d.known[pt.Context]
	return s != nil && s.contains(pt.Index)
}

// record notes that a point has an outcome. It reports whether it had none.
func (d *decisions) record(pt protection.Point) (first bool) {
	if d.has(pt) {
		return false
	}
	s := d.known[pt.Context]
	if s == nil {
		s = new(indexSet)
		d.known[pt.Context] = s
	}
	before := len(s.spans)
	s.add(pt.Index)
	d.spans += len(s.spans) - before
	return true
}

// hold keeps an outcome until it is known to be stable.
func (d *decisions) hold(det protection.Determinant, shown bool) *held {
	h := &held{Determinant: det, has: make([]bool, d.replicas), shown: shown}
	d.held[det.Point] = h
	d.retained += len(det.Outcome) + 1
	d.unstable++
	return h
}

// drop forgets the bytes of an outcome that is stable.
func (d *decisions) drop(h *held) {
	delete(d.held, h.Point)
	d.retained -= len(h.Outcome) + 1
	d.mark(h)
}

// mark records that an outcome is stable.
func (d *decisions) mark(h *held) {
	if !h.stable {
		h.stable = true
		d.unstable--
	}
}

// check refuses what would contradict an outcome that is held.
func (d *decisions) check(det protection.Determinant) error {
	if len(det.Outcome) > MaxOutcome {
		return fmt.Errorf("outcome of %d bytes, at most %d are taken", len(det.Outcome), MaxOutcome)
	}
	if h := d.held[det.Point]; h != nil && !bytes.Equal(h.Outcome, det.Outcome) {
		return fmt.Errorf("second outcome %x of point %v, which has %x", det.Outcome, det.Point, h.Outcome)
	}
	return nil
}

// reached reports whether a replica is known to have all that is held.
func (d *decisions) reached(replica int) bool {
	for _, h := range d.held {
		if !h.has[replica] {
			return false
		}
	}
	return true
}

// inOrder returns the held outcomes by context and index.
func (d *decisions) inOrder() []*held {
	return slices.SortedFunc(maps.Values(d.held), func(a, b *held) int { return comparePoints(a.Point, b.Point) })
}

func comparePoints(a, b protection.Point) int {
	return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Index, b.Index))
}

// Decider implements protection.Protocol: the master decides, once all know
// what its predecessors decided, and until the view names another.
func (p *Protocol) Decider() bool { return p.leads() && !p.takeover.settling }

// leads reports whether this process makes outcomes stable: it is the master, and knows what its predecessors decided.
func (p *Protocol) leads() bool { return p.takeover.promoted() && !p.takeover.syncing }

// Waiting implements protection.Protocol.
func (p *Protocol) Waiting() bool { return p.leads() && p.decisions.unstable > 0 }

// Decide implements protection.Protocol. A point that already has an outcome
// keeps it, and that one is what Decided shows, if it has not yet. The outcome
// has at most MaxOutcome bytes and is the protocol's from now on. A process
// that is not the decider waits for Decided instead of calling this; its call
// does nothing.
func (p *Protocol) Decide(d protection.Determinant) protection.Output {
	p.reset()
	if !p.Decider() || !p.active() || p.decisions.has(d.Point) {
		return p.out
	}
	p.decisions.record(d.Point)
	h := p.decisions.hold(d, false)
	p.propose(h)
	p.settle(h)
	return p.out
}

// propose sends an outcome to the live replicas that may lack it.
func (p *Protocol) propose(h *held) {
	for _, q := range p.others {
		if !h.has[q.Replica] {
			p.emit(q, p.control(frame.Determinant, h.Context, h.Index, h.Outcome))
		}
	}
}

// settle makes an outcome stable if every live replica that is waited for has it: the programs may see it, here
// and at the replicas. It need not be kept once all replicas have it.
func (p *Protocol) settle(h *held) {
	spared := false
	for _, q := range p.others {
		if !h.has[q.Replica] {
			if !p.spares(q) {
				return
			}
			spared = true
		}
	}
	if spared {
		p.settleWithout(h)
		return
	}
	p.decisions.drop(h)
	p.show(h)
	for _, q := range p.others {
		p.emit(q, p.control(frame.Stable, h.Context, h.Index, nil))
	}
}

// show lets the program see an outcome that is stable, once.
func (p *Protocol) show(h *held) {
	if !h.shown {
		p.out.Decided = append(p.out.Decided, h.Determinant)
	}
	h.shown = true
}

// receiveDeterminant takes an outcome from the master. One of another replica comes
// from a master that does not know yet that it is none: it is refused, and the
// sender, which holds it, tells the new master of it. A new master proposes only
// after this process has named it master itself in answering its Sync. One that is known to be stable may come again from a
// new master that has not heard so; it is held until the master has, because
// what is held is what is told again when an acknowledgement may be lost.
func (p *Protocol) receiveDeterminant(from view.Process, f frame.Frame) error {
	if !p.v.IsMaster(from) {
		return nil
	}
	d := &p.decisions
	det := protection.Determinant{Point: protection.Point{Context: f.Context, Index: f.Seq}, Outcome: f.Payload}
	if err := d.check(det); err != nil {
		return err
	}
	if d.held[det.Point] == nil {
		if d.retained+len(det.Outcome)+heldCost*(len(d.held)+1) > maxHeldBytes || d.spans >= maxSpans {
			return fmt.Errorf("%d determinants that are not stable, in %d ranges, are too many", len(d.held), d.spans)
		}
		first := d.record(det.Point)
		d.hold(det, !first)
	}
	p.takeover.asked[from.Replica] = p.termOf() // or has no need to: it decides
	p.emit(from, p.control(frame.DeterminantAck, f.Context, f.Seq, nil))
	return nil
}

// receiveDeterminantAck notes that a replica has an outcome, which stays true when
// this process is not master any more. It is settled here only if this one decides.
func (p *Protocol) receiveDeterminantAck(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !p.decisions.has(pt) {
		return fmt.Errorf("acknowledges a determinant that was not proposed")
	}
	if h := p.decisions.held[pt]; h != nil {
		h.has[from.Replica] = true
		if p.leads() {
			p.settle(h)
			p.settled()
			p.welcome()
		}
	}
	p.answerRecalls()
	return nil
}

// receiveStable shows an outcome that is stable, and forgets it if every live replica has it. A message of a
// former master does not count: its successor may have proposed the outcome again and wait for it to be held
// here.
func (p *Protocol) receiveStable(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !p.v.IsMaster(from) {
		return nil
	}
	if !p.decisions.has(pt) {
		return fmt.Errorf("calls a determinant stable that it did not propose")
	}
	if h := p.decisions.held[pt]; h != nil {
		if !f.Sync {
			p.decisions.drop(h)
		}
		p.show(h)
	}
	return nil
}
