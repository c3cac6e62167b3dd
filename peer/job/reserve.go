package job

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A quest is a job's way to its slots: attempts until one succeeds, or the time is over. In
// between the job waits in the queues of peers, and other peers are looked for.
type quest struct {
	j          *run
	strategy   reservation.Strategy
	began      time.Time
	deadline   time.Time
	candidates []reservation.Candidate
	considered considered
	turn       int       // which of the candidates is asked, if one is to have all processes
	sharing    int       // peers that were refused in the last attempt for the machine that they share
	hopeless   bool      // these would not suffice even if they were free
	looked     time.Time // when these were found; zero: never
	found      chan sighting
	looking    context.CancelFunc      // ends a search that is under way; nil: none is
	asked      map[p2ppeer.ID]struct{} // ever, so that they can be told that the job no longer waits
}

// A sighting is what came of a search for candidates.
type sighting struct {
	candidates []discovery.Candidate
	passed     []discovery.Considered
	err        error
}

// reserve finds and holds the job's slots, trying again until deadline. It
// returns a reservation, or why there is none.
func (j *run) reserve(ctx context.Context, deadline time.Time) (*reservation.Reservation, *Result) {
	strategy, err := reservation.ParseStrategy(j.req.Strategy)
	if err != nil { // Validate has found it good
		return nil, &Result{Status: StatusUsage, Message: err.Error()}
	}
	q := &quest{
		j: j, strategy: strategy, began: time.Now(), deadline: deadline,
		found: make(chan sighting, 1), asked: make(map[p2ppeer.ID]struct{}),
	}
	defer q.endLooking()
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for attempt := 0; ; attempt++ {
		reserved, short, err := q.attempt(ctx)
		if err == nil {
			return reserved, nil
		}
		left := time.Until(deadline)
		if errors.Is(err, errApart) {
			q.leave(ctx)
			return nil, j.refuseApart()
		}
		if ctx.Err() == nil && left <= 0 {
			q.leave(ctx)
			return nil, j.shortage(q.considered, err)
		}
		var place reservation.Place
		if short != nil {
			place = short.Place
			j.waiting(short, left)
		}
		select {
		case <-time.After(min(left, reservation.Pause(attempt, place, rnd))):
		case s := <-q.found: // an attempt follows at once
			_ = q.see(ctx, s) // the attempt is made with those that are known otherwise
		case <-ctx.Done():
			q.leave(ctx)
			r := stoppedBy(ctx, j.req)
			return nil, &r
		}
	}
}

// attempt looks for candidates, unless those that it has are fresh, and asks them for slots
// once. A shortage is told as such, too.
func (q *quest) attempt(ctx context.Context) (*reservation.Reservation, *reservation.ShortageError, error) {
	j := q.j
	if err := q.look(ctx); err != nil {
		return nil, nil, err
	}
	candidates := q.candidates
	if j.req.together() {
		if candidates = onePeer(candidates, j.req.N, q.turn); len(candidates) == 0 {
			return nil, nil, errApart
		}
		q.turn++
	}
	for _, c := range candidates {
		q.asked[c.Peer] = struct{}{}
	}
	// Slots whose holder does not hear the answer stay held until the lease ends,
	// so the user's impatience does not end the asking at once (S4).
	asking, cancel := lingering(ctx, j.s.waits.answers)
	defer cancel()
	reserved, err := reservation.Reserve(asking, j.s.holder, candidates, reservation.Need{
		Job: j.spec.ID, N: j.req.N, R: j.req.R, Strategy: q.strategy,
		Since: j.spec.Created, Kinds: j.kinds(), Waits: !q.hopeless && time.Now().Before(q.deadline),
	})
	if short, ok := errors.AsType[*reservation.ShortageError](err); ok {
		q.considered, q.hopeless, q.sharing = q.considered.with(short), short.Hopeless, short.Reasons[reservation.SameMachine]
		short.Unheard(q.candidates)
		return nil, short, err
	}
	if err != nil {
		return nil, nil, err
	}
	want := int64(j.req.N * j.req.R)
	j.phase(Reserving, want, want)
	return reserved, nil, nil
}

// look waits for the first candidates, and has others be looked for when they are no longer fresh.
func (q *quest) look(ctx context.Context) error {
	j := q.j
	want := int64(j.req.N * j.req.R)
	first := q.looked.IsZero()
	if q.looking == nil && (first || time.Since(q.looked) >= reservation.Freshness(time.Since(q.began))) {
		q.search(ctx)
	}
	if !first {
		return nil
	}
	j.phase(Discovering, 0, want)
	if err := q.see(ctx, <-q.found); err != nil {
		return err
	}
	j.phase(Reserving, 0, want)
	return context.Cause(ctx)
}

// search begins to look for candidates.
func (q *quest) search(ctx context.Context) {
	ctx, q.looking = context.WithCancel(ctx)
	need := q.need()
	go func() { // ends soon after ctx does
		var f sighting
		f.candidates, f.passed, f.err = q.j.s.cfg.Discovery.Candidates(ctx, need)
		q.found <- f
	}()
}

// need is what a search looks for. It ends when it has found slots enough: those of peers whose machine
// another peer had already taken were of no use.
func (q *quest) need() discovery.Need {
	need := discovery.Need{
		Slots: q.j.req.N * (q.j.req.R + q.sharing), PerPeer: q.j.req.N, Busy: true, All: q.j.req.together(), Filter: q.j.req.Filter,
	}
	if q.byData() {
		need.Wide = q.j.s.waits.wide
	}
	return need
}

// see takes what came of a search.
func (q *quest) see(ctx context.Context, f sighting) error {
	q.looking()
	q.looking = nil
	if f.err != nil {
		return f.err
	}
	q.looked = time.Now()
	q.considered = newConsidered(f.passed)
	if outdated := q.j.s.cfg.Outdated; outdated != nil {
		q.considered.outdated(outdated())
	}
	q.candidates = reservation.Remember(q.j.eligible(f.candidates, q.considered), q.candidates)
	for _, c := range q.candidates {
		q.j.met[c.Peer] = c
	}
	if q.byData() {
		q.j.askCached(ctx, q.candidates)
	}
	return nil
}

// byData reports whether it matters who has the job's files already.
func (q *quest) byData() bool {
	return q.strategy == reservation.DataSpread || q.strategy == reservation.DataConcentrate
}

// endLooking ends the search that is under way.
func (q *quest) endLooking() {
	if q.looking != nil {
		q.looking()
		<-q.found
	}
}

// leave has the job leave the queues of all peers that were ever asked.
func (q *quest) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.j.s.waits.answers)
	defer cancel()
	peers := make([]p2ppeer.ID, 0, len(q.asked))
	for p := range q.asked {
		peers = append(peers, p)
	}
	slices.Sort(peers)
	reservation.Leave(ctx, q.j.s.holder, q.j.spec.ID, peers)
}

// lingering returns a context that ends some time after ctx does.
func lingering(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		select {
		case <-time.After(longer):
		case <-late.Done():
		}
	})
	return late, func() {
		stop()
		cancel()
	}
}

// eligible returns the candidates that can run the program, and notes why the others cannot.
func (j *run) eligible(found []discovery.Candidate, why considered) []reservation.Candidate {
	var out []reservation.Candidate
	for _, c := range found {
		id := c.AddrInfo.ID
		if !j.spec.RunsOn(c.Offer.OS, c.Offer.Arch) {
			why[id] = verdict{Platforms, c.Offer.OS + "/" + c.Offer.Arch}
			continue
		}
		if j.excluded[id] {
			why[id] = verdict{Unfit, ""}
			continue
		}
		j.s.cfg.Host.Peerstore().AddAddrs(id, c.AddrInfo.Addrs, time.Hour)
		out = append(out, reservation.Candidate{
			Peer: id, Slots: c.Offer.Free(), Total: c.Offer.SlotsTotal,
			Speed: effectiveSpeed(c.Offer), RTT: c.RTT, Domain: j.domain(c.AddrInfo, c.Offer),
		})
	}
	return out
}

// kinds are those of the job's programs, as owners' policies name them.
func (j *run) kinds() []string {
	var kinds []string
	for _, p := range j.spec.Programs {
		kind := policy.Native
		if p.Wasm() {
			kind = policy.Wasm
		}
		if !slices.Contains(kinds, string(kind)) {
			kinds = append(kinds, string(kind))
		}
	}
	return kinds
}

// effectiveSpeed is what is left of a peer's speed beside what its machine does already.
func effectiveSpeed(o discovery.Offer) int { return int(float64(o.Speed) / (1 + o.Load)) }
