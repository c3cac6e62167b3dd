package replication

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// maxOutcome bounds the bytes of one outcome. The outcomes of the engine are far smaller.
const maxOutcome = 64 << 10

// Bounds of the state that received frames can make a replica hold.
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
	// held contains the outcomes that are not known to be stable everywhere. Of other outcomes only the point is
	// stored, in known.
	held     map[protection.Point]*held
	retained int // bytes of held outcomes, plus one per outcome
	unstable int // number of held outcomes that are not marked stable
}

// A held outcome is waiting to become stable.
type held struct {
	protection.Determinant
	has    []bool // per replica: whether it is known to have this outcome
	shown  bool   // the program of this process has seen it
	stable bool   // announced by this process as master; only replicas that are set aside lack it
}

func newDecisions() decisions {
	return decisions{known: make(map[uint32]*indexSet), held: make(map[protection.Point]*held)}
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

// record records that a point has an outcome. It reports whether the point had none before.
func (d *decisions) record(pt protection.Point) (first bool) {
	if d.has(pt) {
		return false
	}
	s := d.points(pt.Context)
	before := len(s.spans)
	s.add(pt.Index)
	d.spans += len(s.spans) - before
	return true
}

// points returns the points of a context that have an outcome.
func (d *decisions) points(context uint32) *indexSet {
	s := d.known[context]
	if s == nil {
		s = new(indexSet)
		d.known[context] = s
	}
	return s
}

// markSeen records that the program has seen the outcomes of all points of a context up to upTo.
func (d *decisions) markSeen(context uint32, upTo uint64) {
	s := d.points(context)
	before := len(s.spans)
	s.addUpTo(upTo)
	d.spans += len(s.spans) - before
	for pt, h := range d.held {
		h.shown = h.shown || pt.Context == context && pt.Index <= upTo
	}
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
