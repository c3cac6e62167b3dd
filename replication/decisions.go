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

// maxOutcome bounds the bytes of one outcome. Those of the engine are far smaller.
const maxOutcome = 64 << 10

// Bounds of what frames can make a replica hold.
const (
	maxHeldBytes = 64 << 20 // bytes of held outcomes, including heldCost
	heldCost     = 64       // approximate cost of an outcome apart from its bytes
	maxSpans     = 1 << 20  // see indexSet
)

// decisions records the outcomes of the rank's nondeterministic calls.
type decisions struct {
	replicas int
	known    map[uint32]*indexSet // per context: the points with an outcome
	spans    int                  // total in known
	// held contains the outcomes that are not known to be stable everywhere. Of the others only the point
	// is remembered.
	held     map[protection.Point]*held
	retained int // bytes of held outcomes, plus one for each
	unstable int // number of held outcomes that are not marked stable
}

// A held outcome is waiting to become stable.
type held struct {
	protection.Determinant
	has    []bool // per replica: it is known to have this outcome
	shown  bool   // the program of this process has seen it
	stable bool   // announced by this process as master; only replicas that are set aside lack it
}

func newDecisions(replicas int) decisions {
	return decisions{
		replicas: replicas,
		known:    make(map[uint32]*indexSet),
		held:     make(map[protection.Point]*held),
	}
}

// grow makes room for the given number of replicas.
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

// record records that a point has an outcome. It reports whether it had none.
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

// drop discards the bytes of a stable outcome.
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

// check rejects an outcome that is too long or contradicts a held one.
func (d *decisions) check(det protection.Determinant) error {
	if len(det.Outcome) > maxOutcome {
		return fmt.Errorf("outcome of %d bytes, at most %d are allowed", len(det.Outcome), maxOutcome)
	}
	if h := d.held[det.Point]; h != nil && !bytes.Equal(h.Outcome, det.Outcome) {
		return fmt.Errorf("outcome %x of point %v contradicts the known outcome %x", det.Outcome, det.Point, h.Outcome)
	}
	return nil
}

// reached reports whether a replica is known to have all held outcomes.
func (d *decisions) reached(replica int) bool {
	for _, h := range d.held {
		if !h.has[replica] {
			return false
		}
	}
	return true
}

// inOrder returns the held outcomes ordered by context and index.
func (d *decisions) inOrder() []*held {
	return slices.SortedFunc(maps.Values(d.held), func(a, b *held) int { return comparePoints(a.Point, b.Point) })
}

func comparePoints(a, b protection.Point) int {
	return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Index, b.Index))
}

// Decider implements protection.Protocol. The master decides once all replicas know its predecessors'
// decisions, and until the view names another master.
func (p *Protocol) Decider() bool { return p.leads() && !p.takeover.settling }

// leads reports whether this process makes outcomes stable: it is the master and knows its predecessors'
// decisions.
func (p *Protocol) leads() bool { return p.takeover.isMaster() && !p.takeover.syncing }

// Waiting implements protection.Protocol.
func (p *Protocol) Waiting() bool { return p.leads() && p.decisions.unstable > 0 }

// Decide implements protection.Protocol. A point that already has an outcome keeps it, and Decided shows
// that outcome if it has not yet been shown. The outcome has at most maxOutcome bytes and belongs to the
// protocol from now on. A process that is not the decider has to wait for Decided; its call has no
// effect.
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

// settle makes an outcome stable if every live replica that is waited for has it. Then the programs may
// see it, here and at the replicas. It is no longer held once all live replicas have it.
func (p *Protocol) settle(h *held) {
	spared := false
	for _, q := range p.others {
		if !h.has[q.Replica] {
			if !p.exempts(q) {
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

// show passes a stable outcome to the program, once.
func (p *Protocol) show(h *held) {
	if !h.shown {
		p.out.Decided = append(p.out.Decided, h.Determinant)
	}
	h.shown = true
}

// receiveDeterminant processes an outcome from the master. One from another replica comes from a former
// master that does not know of its successor. It is ignored; the sender holds the outcome and reports it
// to the new master. A new master proposes only after this process has answered its Sync and so accepted
// it as master.
//
// An outcome that is known to be stable may arrive again from a new master that does not know this. It is
// held until the master knows, because held outcomes are reported again when an acknowledgement may have
// been lost.
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
			return fmt.Errorf("too many unstable determinants: %d in %d ranges", len(d.held), d.spans)
		}
		first := d.record(det.Point)
		d.hold(det, !first)
	}
	p.takeover.asked[from.Replica] = p.termOf() // a master that decides need not ask
	p.emit(from, p.control(frame.DeterminantAck, f.Context, f.Seq, nil))
	return nil
}

// receiveDeterminantAck records that a replica has an outcome, which stays true after this process ceases
// to be master. The outcome is settled here only if this process decides.
func (p *Protocol) receiveDeterminantAck(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !p.decisions.has(pt) {
		return fmt.Errorf("acknowledgement of a determinant that was not proposed")
	}
	if h := p.decisions.held[pt]; h != nil {
		h.has[from.Replica] = true
		if p.leads() {
			p.settle(h)
			p.settled()
			p.sendUpToDate()
		}
	}
	p.answerRecalls()
	return nil
}

// receiveStable shows a stable outcome, and drops it if every live replica has it. A message of a former
// master is ignored: its successor may have proposed the outcome again and rely on it being held here.
func (p *Protocol) receiveStable(from view.Process, f frame.Frame) error {
	pt := protection.Point{Context: f.Context, Index: f.Seq}
	if !p.v.IsMaster(from) {
		return nil
	}
	if !p.decisions.has(pt) {
		return fmt.Errorf("stable frame for a determinant that was not proposed")
	}
	if h := p.decisions.held[pt]; h != nil {
		if !f.Sync {
			p.decisions.drop(h)
		}
		p.show(h)
	}
	return nil
}
