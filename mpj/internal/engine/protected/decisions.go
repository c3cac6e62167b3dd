package protected

import (
	"encoding/binary"
	"maps"
	"math"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// decisions agrees with the other replicas on the outcomes of the program's nondeterministic calls.
// The decider chooses outcomes; each takes effect when the protocol returns it as decided. Of the
// engine, it needs the mailboxes, the view, the clock, and a way to wait.
type decisions struct {
	p           *transport
	decider     bool                           // last result of protocol.Decider
	open        map[protection.Point]*decision // undecided points that the program has reached
	early       map[protection.Point][]byte    // outcomes of points that the program has not reached
	time        float64                        // last outcome of Wtime
	clockOffset float64                        // seconds to add to the clock to continue the last decider's time
}

func newDecisions(p *transport) decisions {
	return decisions{
		p: p, decider: p.protocol.Decider(),
		open: make(map[protection.Point]*decision), early: make(map[protection.Point][]byte),
	}
}

// A decision is a point that the program has reached and whose outcome is not known yet.
type decision struct {
	request *engine.Request // a wildcard receive, or nil for a call that waits for the outcome

	outcome []byte
	decided bool
	waiter  *engine.Waiter
}

// preset prepares wildcard r. If its outcome is already known, r becomes exact; if another process
// decides, r waits for the outcome.
func (ds *decisions) preset(r *engine.Request) error {
	at := point(r)
	if outcome, ok := ds.early[at]; ok {
		delete(ds.early, at)
		source, seq, err := ds.decodeName(outcome)
		if err != nil {
			ds.p.loop.Fail(err)
			return err
		}
		r.Assign(source, seq)
	} else if !ds.decider {
		ds.open[at] = &decision{request: r}
	}
	return nil
}

// decide waits for the outcome of point p.
func (ds *decisions) decide(p protection.Point, w *engine.Waiter) ([]uint64, error) {
	if outcome, ok := ds.early[p]; ok {
		delete(ds.early, p)
		return ds.decode(outcome)
	}
	d := &decision{waiter: w}
	ds.open[p] = d
	proposed := false
	err := ds.p.loop.Await(w, func() bool {
		if ds.decider && !d.decided && !proposed {
			if values, ok := ds.p.loop.Outcome(w); ok {
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
		ds.p.loop.Fail(err)
	}
	return values, err
}

// propose passes m, the message that wildcard r proposes, to the protocol as its outcome.
func (ds *decisions) propose(r *engine.Request, m match.Message) {
	at := point(r)
	ds.open[at] = &decision{request: r}
	outcome := encodeOutcome(uint64(m.Source), m.Seq)
	ds.p.apply(ds.p.protocol.Decide(protection.Determinant{Point: at, Outcome: outcome}))
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
		d.waiter.Wake()
		return
	}
	source, seq, err := ds.decodeName(det.Outcome)
	if err != nil {
		ds.p.loop.Fail(err)
		return
	}
	b := ds.p.loop.Mailbox(det.Context)
	if m, done := b.Decide(&d.request.Recv, source, seq); done {
		ds.p.complete(d.request, m)
	}
	ds.p.settle(b)
	if ds.p.loop.SomeFinished() {
		b.WakePosts()
	}
}

// decodeName decodes the outcome of a wildcard receive.
func (ds *decisions) decodeName(outcome []byte) (source int, seq uint64, err error) {
	rank, n := binary.Uvarint(outcome)
	if n <= 0 || rank >= uint64(ds.p.loop.View().N) {
		return 0, 0, engine.ErrMalformed
	}
	seq, m := binary.Uvarint(outcome[n:])
	if m <= 0 || n+m != len(outcome) {
		return 0, 0, engine.ErrMalformed
	}
	return int(rank), seq, nil
}

// stepDown withdraws the choices that this process has not proposed, which the new decider then
// makes. The protocol keeps proposed choices until they are decided.
func (ds *decisions) stepDown() {
	ds.decider = false
	for _, b := range ds.p.loop.Mailboxes() {
		for posted := range b.Posts() {
			if r := engine.RequestOf(posted); r.Wild != nil && r.Wild.Open() {
				ds.open[point(r)] = &decision{request: r}
			}
		}
	}
}

// takeOver makes the pending choices after this process has become the decider.
func (ds *decisions) takeOver() {
	ds.decider = true
	for _, b := range ds.p.loop.Mailboxes() {
		ds.p.settle(b)
	}
	for _, d := range ds.open {
		d.waiter.Wake()
	}
}

// resume forgets the outcomes of the points before the checkpoint from which the program resumes, and
// continues its time.
func (ds *decisions) resume(time float64) {
	maps.DeleteFunc(ds.early, func(pt protection.Point, _ []byte) bool {
		return pt.Index <= ds.p.loop.Mailbox(pt.Context).Points
	})
	ds.time, ds.clockOffset = time, time-ds.p.loop.Now().Seconds()
}

// clock returns the outcome that the decider chooses for Time.
func (ds *decisions) clock() uint64 {
	return math.Float64bits(ds.p.loop.Now().Seconds() + ds.clockOffset)
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
			return nil, engine.ErrMalformed
		}
		values = append(values, v)
		b = b[n:]
	}
	return values, nil
}

// point returns the point of a receive with a Wild.
func point(r *engine.Request) protection.Point { return protection.Point(r.Wild.Point) }
