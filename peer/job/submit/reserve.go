package submit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A slotSearch is a job's search for slots: attempts until one succeeds or the deadline passes.
// Between two attempts, the job waits in the queues of peers, and looks for other peers.
type slotSearch struct {
	j          *run
	strategy   reservation.Strategy
	began      time.Time
	deadline   time.Time
	candidates []reservation.Candidate
	considered considered
	turn       int       // index of the next candidate to ask, if one peer is to run all processes
	sharing    int       // peers refused in the last attempt because another peer on their machine took part
	hopeless   bool      // the candidates would not suffice even if their slots were free
	looked     time.Time // time of the last search; zero: none yet
	found      chan searchResult
	looking    context.CancelFunc      // ends the running search; nil: none runs
	asked      map[p2ppeer.ID]struct{} // all peers ever asked, which are told when the job no longer waits
}

// A searchResult is the result of a search for candidates.
type searchResult struct {
	candidates []discovery.Candidate
	passed     []discovery.Considered
	err        error
}

// reserve finds and holds the job's slots, and tries again until deadline. It returns a
// reservation, or the reason why there is none.
func (j *run) reserve(ctx context.Context, deadline time.Time) (*reservation.Reservation, *job.Result) {
	strategy, err := reservation.ParseStrategy(j.req.Strategy)
	if err != nil { // impossible after Validate
		return nil, &job.Result{Status: job.StatusUsage, Message: err.Error()}
	}
	q := &slotSearch{
		j: j, strategy: strategy, began: time.Now(), deadline: deadline,
		found: make(chan searchResult, 1), asked: make(map[p2ppeer.ID]struct{}),
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
			return nil, refuseApart(j.req.N)
		}
		if ctx.Err() == nil && left <= 0 {
			q.leave(ctx)
			return nil, q.considered.shortage(j.req, err)
		}
		var place reservation.Place
		if short != nil {
			place = short.Place
			j.waiting(short, left)
		}
		select {
		case <-time.After(min(left, reservation.Pause(attempt, place, rnd))):
		case s := <-q.found: // an attempt follows at once
			_ = q.handleResult(ctx, s) // after an error, the attempt uses the known candidates
		case <-ctx.Done():
			q.leave(ctx)
			return nil, stoppedBy(ctx, j.req)
		}
	}
}

// attempt looks for candidates, unless the known ones are fresh, and asks them for slots once. If
// there are too few slots, it also returns the error as a ShortageError.
func (q *slotSearch) attempt(ctx context.Context) (*reservation.Reservation, *reservation.ShortageError, error) {
	j := q.j
	if err := q.refresh(ctx); err != nil {
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
	// Slots stay held until the lease ends if the submitter misses the answer. So the requests
	// outlive a cancelled ctx for a short time (S4).
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

// refresh waits for the first candidates, and starts a new search when the known ones are no longer
// fresh.
func (q *slotSearch) refresh(ctx context.Context) error {
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
	if err := q.handleResult(ctx, <-q.found); err != nil {
		return err
	}
	j.phase(Reserving, 0, want)
	return context.Cause(ctx)
}

// search starts a search for candidates.
func (q *slotSearch) search(ctx context.Context) {
	ctx, q.looking = context.WithCancel(ctx)
	need := q.need()
	go func() { // ends soon after ctx does
		var f searchResult
		f.candidates, f.passed, f.err = q.j.s.cfg.Discovery.Candidates(ctx, need)
		q.found <- f
	}()
}

// need returns the requirements of a search. The search ends when it has found enough slots. Peers
// that share a machine with a peer that took part were of no use, so it looks for N more slots for
// each.
func (q *slotSearch) need() discovery.Need {
	need := discovery.Need{
		Slots: q.j.req.N * (q.j.req.R + q.sharing), PerPeer: q.j.req.N, Busy: true, All: q.j.req.together(), Filter: q.j.req.Filter,
	}
	if q.byData() {
		need.Wide = q.j.s.waits.wide
	}
	return need
}

// handleResult takes the result of a search.
func (q *slotSearch) handleResult(ctx context.Context, f searchResult) error {
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
	q.candidates = reservation.Remember(q.j.known.eligible(f.candidates, q.considered), q.candidates)
	for _, c := range q.candidates {
		q.j.known.met[c.Peer] = c
	}
	if q.byData() {
		q.askCached(ctx, q.candidates)
	}
	return nil
}

// byData reports whether it matters which peers already have the job's files.
func (q *slotSearch) byData() bool {
	return q.strategy == reservation.DataSpread || q.strategy == reservation.DataConcentrate
}

// endLooking ends the running search, if any.
func (q *slotSearch) endLooking() {
	if q.looking != nil {
		q.looking()
		<-q.found
	}
}

// leave removes the job from the queues of all peers that were ever asked.
func (q *slotSearch) leave(ctx context.Context) {
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

// Processes share memory only within one peer. So a job that allows only shared-memory channels
// runs on one peer, or is refused before it gets slots.

// together reports whether all processes of r have to run on one peer.
func (r Request) together() bool {
	return r.N > 1 && slices.Equal(r.Channels, []string{string(proclink.Shm)})
}

// onePeer returns the one candidate to ask for all n slots. Each turn selects another one, those
// with n free slots first. It returns none if no candidate has n slots.
func onePeer(candidates []reservation.Candidate, n, turn int) []reservation.Candidate {
	var free, later []reservation.Candidate
	for _, c := range candidates {
		switch {
		case c.Slots >= n:
			free = append(free, c)
		case c.Total >= n:
			later = append(later, c)
		}
	}
	all := append(free, later...)
	if len(all) == 0 {
		return nil
	}
	i := turn % len(all)
	return all[i : i+1]
}

// errApart reports that no candidate has enough slots for a job that must run on one peer.
var errApart = errors.New("no peer has room for all processes")

// refuseApart returns the result of a job for which no peer has enough slots.
func refuseApart(n int) *job.Result {
	return &job.Result{
		Status:  job.StatusShortage,
		Message: fmt.Sprintf("no peer has the %s needed: with --channels shm all processes run on one peer", english.Plural(n, "slot", "")),
		Hint:    "allow other channels (--channels shm,tcp,stream), or lower -n",
	}
}
