package engine

import (
	"encoding/binary"
	"maps"
	"math"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// decisions agrees with the other replicas on the outcomes of the program's nondeterministic calls.
// The decider chooses outcomes; each takes effect when the protocol returns it as decided. Of the
// engine, it needs the mailboxes, the view, the clock, and a way to wait.
type decisions struct {
	p           *protected
	decider     bool                           // last result of protocol.Decider
	open        map[protection.Point]*decision // undecided points that the program has reached
	early       map[protection.Point][]byte    // outcomes of points that the program has not reached
	time        float64                        // last outcome of Wtime
	clockOffset float64                        // seconds to add to the clock to continue the last decider's time
}

func newDecisions(p *protected) decisions {
	return decisions{
		p: p, decider: p.protocol.Decider(),
		open: make(map[protection.Point]*decision), early: make(map[protection.Point][]byte),
	}
}

// A decision is a point that the program has reached and whose outcome is not known yet.
type decision struct {
	request *Request // a wildcard receive, or nil for a call that waits for the outcome

	outcome []byte
	decided bool
	waiter  *waiter
}

// nextPoint takes the next point of context for a call of the program.
func (p *protected) nextPoint(context uint32) protection.Point {
	p.leading.step()
	return p.mailbox(context).nextPoint(context)
}

// nextPoint takes the next point of the mailbox's context.
func (b *mailbox) nextPoint(context uint32) protection.Point {
	b.points++
	return protection.Point{Context: context, Index: b.points}
}

// preset prepares wildcard r. If its outcome is already known, r becomes exact; if another process
// decides, r waits for the outcome.
func (ds *decisions) preset(r *Request) error {
	point := r.point()
	if outcome, ok := ds.early[point]; ok {
		delete(ds.early, point)
		source, seq, err := ds.decodeName(outcome)
		if err != nil {
			ds.p.fail(err)
			return err
		}
		r.Assign(source, seq)
	} else if !ds.decider {
		ds.open[point] = &decision{request: r}
	}
	return nil
}

// Decide takes a point of context, and waits for its outcome, which is the choice of w. The decider
// chooses whenever w is woken, until there is an outcome.
func (p *protected) Decide(context uint32, w *waiter) ([]uint64, error) {
	return p.decisions.decide(p.nextPoint(context), w)
}

// decide waits for the outcome of point p.
func (ds *decisions) decide(p protection.Point, w *waiter) ([]uint64, error) {
	if outcome, ok := ds.early[p]; ok {
		delete(ds.early, p)
		return ds.decode(outcome)
	}
	d := &decision{waiter: w}
	ds.open[p] = d
	proposed := false
	err := ds.p.await(w, func() bool {
		if ds.decider && !d.decided && !proposed {
			if values, ok := ds.p.outcome(w); ok {
				proposed = true
				ds.p.apply(ds.p.protocol.Decide(protection.Determinant{Point: p, Outcome: encodeOutcome(values...)}))
			}
		}
		return d.decided
	})
	if err != nil {
		delete(ds.open, p)
		return nil, err
	}
	return ds.decode(d.outcome)
}

// decode calls decodeOutcome, and stops the engine on an error.
func (ds *decisions) decode(outcome []byte) ([]uint64, error) {
	values, err := decodeOutcome(outcome)
	if err != nil {
		ds.p.fail(err)
	}
	return values, err
}

// propose passes m, the message that wildcard r proposes, to the protocol as its outcome.
func (ds *decisions) propose(r *Request, m message) {
	point := r.point()
	ds.open[point] = &decision{request: r}
	outcome := encodeOutcome(uint64(m.Source), m.Seq)
	ds.p.apply(ds.p.protocol.Decide(protection.Determinant{Point: point, Outcome: outcome}))
}

// decided applies an outcome that the program may now see.
func (ds *decisions) decided(det protection.Determinant) {
	ds.p.stall.end()
	d, ok := ds.open[det.Point]
	if !ok {
		ds.early[det.Point] = det.Outcome
		return
	}
	delete(ds.open, det.Point)
	if d.request == nil {
		d.outcome, d.decided = det.Outcome, true
		d.waiter.wake()
		return
	}
	source, seq, err := ds.decodeName(det.Outcome)
	if err != nil {
		ds.p.fail(err)
		return
	}
	b := ds.p.mailbox(det.Context)
	if m, done := b.Decide(&d.request.Recv, source, seq); done {
		ds.p.complete(d.request, m)
	}
	ds.p.settle(b)
	if ds.p.someFinished() {
		b.wakePosts()
	}
}

// decodeName decodes the outcome of a wildcard receive.
func (ds *decisions) decodeName(outcome []byte) (source int, seq uint64, err error) {
	rank, n := binary.Uvarint(outcome)
	if n <= 0 || rank >= uint64(ds.p.view().N) {
		return 0, 0, errMalformed
	}
	seq, m := binary.Uvarint(outcome[n:])
	if m <= 0 || n+m != len(outcome) {
		return 0, 0, errMalformed
	}
	return int(rank), seq, nil
}

// stepDown withdraws the choices that this process has not proposed, which the new decider then
// makes. The protocol keeps proposed choices until they are decided.
func (ds *decisions) stepDown() {
	ds.decider = false
	for _, b := range ds.p.mailboxes() {
		for posted := range b.Posts() {
			if r := requestOf(posted); r.Wild != nil && r.Wild.Open() {
				ds.open[r.point()] = &decision{request: r}
			}
		}
	}
}

// takeOver makes the pending choices after this process has become the decider.
func (ds *decisions) takeOver() {
	ds.decider = true
	for _, b := range ds.p.mailboxes() {
		ds.p.settle(b)
	}
	for _, d := range ds.open {
		d.waiter.wake()
	}
}

// resume forgets the outcomes of the points before the checkpoint from which the program resumes, and
// continues its time.
func (ds *decisions) resume(time float64) {
	maps.DeleteFunc(ds.early, func(pt protection.Point, _ []byte) bool {
		return pt.Index <= ds.p.mailbox(pt.Context).points
	})
	ds.time, ds.clockOffset = time, time-ds.p.now().Seconds()
}

// Time returns the time of the last decider, which a new decider continues.
func (p *protected) Time() float64 {
	ds := &p.decisions
	w := waiters.Get().(*waiter)
	p.lock()
	defer p.unlock()
	defer w.put()
	w.choice = choice{kind: chosenNumber, number: ds.clock}
	values, err := p.Decide(decisionContext, w)
	if err == nil && len(values) == 1 {
		ds.time = math.Float64frombits(values[0])
		if now := p.now().Seconds(); !ds.decider || ds.time > now+ds.clockOffset {
			ds.clockOffset = ds.time - now
		}
	}
	return ds.time
}

// clock returns the outcome that the decider chooses for Time.
func (ds *decisions) clock() uint64 {
	return math.Float64bits(ds.p.now().Seconds() + ds.clockOffset)
}

// An outcome is a list of unsigned numbers. Their meaning depends on the call.

func encodeOutcome(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func decodeOutcome(b []byte) ([]uint64, error) {
	var values []uint64
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errMalformed
		}
		values = append(values, v)
		b = b[n:]
	}
	return values, nil
}

// point returns the point of a receive with a Wild.
func (r *Request) point() protection.Point { return protection.Point(r.Wild.Point) }
