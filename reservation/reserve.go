package reservation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// How long Reserve waits.
const (
	// askTimeout ends one Hold or Confirm: longer than a dial and a few round
	// trips across the world, shorter than the patience of a user.
	askTimeout = 3 * time.Second
	// minGrace is the least time that slower peers get to answer once the job
	// could be placed: nearer or better ones may be among them.
	minGrace = 50 * time.Millisecond
	// releaseTimeout bounds the giving back at peers that have answered before.
	releaseTimeout = 2 * time.Second
	// silentTimeout bounds it at those that have not: time to send the request,
	// which is carried out also when nobody waits for its answer.
	silentTimeout = 100 * time.Millisecond
)

// A Requester asks a peer on the submitter's behalf. Errors carry a Reason
// where there is one. Every method returns soon after its context ends.
type Requester interface {
	// Hold asks for slots; the request's Submitter is the one who asks.
	Hold(ctx context.Context, peer p2ppeer.ID, q Request) (Grant, error)
	// Confirm keeps slots of those that key holds and gives back the rest.
	Confirm(ctx context.Context, peer p2ppeer.ID, key Key, slots int) error
	// Release gives back what the job holds at the peer and has not started. The job
	// leaves the peer's queue, unless it waits on.
	Release(ctx context.Context, peer p2ppeer.ID, job string, waits bool) error
}

// A Placement is the processes that one peer is to run, and the key to its
// slots for them.
type Placement struct {
	Peer      p2ppeer.ID
	Key       Key
	Processes []view.Process
	Machine   string // see Grant.Machine
}

// A Reservation is confirmed slots for every process of a job. Keys that are not
// redeemed within ConfirmedLease are of no use any more.
type Reservation struct {
	Job        string
	Placements []Placement // in the order of the strategy; no peer twice
}

// Release gives back every slot whose process has not started. It returns when
// all peers have answered or ctx has ended; what it cannot reach expires.
func (r *Reservation) Release(ctx context.Context, with Requester) {
	var peers []p2ppeer.ID
	for _, p := range r.Placements {
		peers = append(peers, p.Peer)
	}
	release(ctx, with, r.Job, peers, false)
}

// Leave has a job leave the queues of peers, and gives back what it holds there and has not
// started. It is for a caller who no longer tries. It returns when all have answered or ctx has
// ended; what it cannot reach expires.
func Leave(ctx context.Context, with Requester, job string, peers []p2ppeer.ID) {
	release(ctx, with, job, peers, false)
}

// Reserve makes one attempt to hold and confirm slots for all of need's
// processes at the candidates, given nearest first. It is all or nothing: when
// it fails, everything is given back by the time it returns, except at peers
// that do not answer, where the leases end.
//
// The error is a *ShortageError when the candidates do not suffice. The caller
// then waits for a Pause, discovers candidates anew and tries again under the
// same job name, for as long as its user wants. A job that Waits keeps its place in the
// queues meanwhile.
func Reserve(ctx context.Context, r Requester, candidates []Candidate, need Need) (*Reservation, error) {
	if err := need.validate(); err != nil {
		return nil, fmt.Errorf("reserve slots for job %q: %w", need.Job, err)
	}
	a := newAttempt(candidates, need)
	if a.hopeless() {
		a.need.Waits = false // it would only be in the way of others
	}
	placed := settle(ctx, r, a)
	if placed == nil || ctx.Err() != nil {
		err := failure(ctx, a)
		giveBack(ctx, r, a, nil)
		return nil, fmt.Errorf("reserve slots for job %q: %w", need.Job, err)
	}
	giveBack(ctx, r, a, placed)
	return &Reservation{Job: need.Job, Placements: placed}, nil
}

// failure says why the attempt ends: too few slots, the end of ctx, or both.
func failure(ctx context.Context, a *attempt) error {
	switch err := ctx.Err(); {
	case err == nil:
		return a.shortage()
	case a.enough():
		return err
	default:
		return fmt.Errorf("%w: %w", err, a.shortage())
	}
}

// An answer is what came of an ask.
type answer struct {
	index int
	took  time.Duration
	grant Grant
	err   error
}

func (a *attempt) take(got answer) {
	if got.err == nil {
		a.answered(got.took)
		a.granted(got.index, got.grant)
		return
	}
	why := reasonOf(got.err)
	if why != Silent && why != Unreachable {
		a.answered(got.took)
	}
	if q, ok := errors.AsType[*Queued](got.err); ok {
		a.queued(got.index, q)
		return
	}
	a.refused(got.index, why)
}

// holdSlots sends what the attempt asks, until every answer is in but for those of the
// unheard that are late, or enough are and the others have had as long again, or maxPatience where
// they may part the replicas of a rank. Those that it then stops waiting for count as silent, unless
// their grant comes in at the last moment.
func holdSlots(ctx context.Context, r Requester, a *attempt) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &asking{a: a, r: r, answers: make(chan answer, len(a.peers)), began: time.Now()}
	h.send(ctx)
	for a.hoped() && ctx.Err() == nil {
		h.suffice()
		if h.grace != nil && !a.awaited() {
			break // who is late already has had as long
		}
		select {
		case got := <-h.answers:
			a.take(got)
			h.takeMore()
		case <-h.lateness():
			h.hedge()
		case <-h.grace:
			stop()
		case <-h.choice:
			stop()
		case <-ctx.Done():
		}
		h.send(ctx)
	}
	stop()
	for a.pending() {
		a.take(<-h.answers)
	}
}

// An asking is the holding of slots under way.
type asking struct {
	a       *attempt
	r       Requester
	answers chan answer
	began   time.Time
	sent    []sending        // whose answers may be awaited, in order
	grace   <-chan time.Time // begins when there is nothing better to wait for
	choice  <-chan time.Time // begins when every process can be placed
}

// suffice begins the last waiting once every process can be placed.
func (h *asking) suffice() {
	if h.grace != nil || !h.a.enough() {
		return
	}
	if h.choice == nil {
		h.choice = time.After(maxPatience)
	}
	if !h.a.waits() {
		h.grace = time.After(max(minGrace, time.Since(h.began)))
	}
}

// A sending is when a peer was asked.
type sending struct {
	ask
	at time.Time
}

// awaited reports whether it is still to be answered: a peer may be asked for more later.
func (h *asking) awaited(s sending) bool {
	p := h.a.peers[s.index]
	return p.pending && p.wanted == s.slots
}

// send sends what the attempt asks now.
func (h *asking) send(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	for _, q := range h.a.next() {
		peer, need := h.a.peers[q.index].Peer, h.a.need
		h.sent = append(h.sent, sending{q, now})
		go func() { // ends with its answer, which is always read
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			g, err := h.r.Hold(ctx, peer, Request{Job: need.Job, Slots: q.slots, Since: need.Since, Waits: need.Waits, Kinds: need.Kinds})
			h.answers <- answer{index: q.index, took: time.Since(now), grant: g, err: err}
		}()
	}
}

// takeMore takes the answers that are in as well: what to ask next is worked out once for all.
func (h *asking) takeMore() {
	for {
		select {
		case got := <-h.answers:
			h.a.take(got)
		default:
			return
		}
	}
}

// lateness fires when the longest awaited answer is late.
func (h *asking) lateness() <-chan time.Time {
	for len(h.sent) > 0 && !h.awaited(h.sent[0]) {
		h.sent = h.sent[1:]
	}
	if len(h.sent) == 0 {
		return nil
	}
	return time.After(time.Until(h.sent[0].at.Add(h.a.patience())))
}

// hedge has others be asked in place of those whose answer is late.
func (h *asking) hedge() {
	patience := h.a.patience()
	for len(h.sent) > 0 && time.Since(h.sent[0].at) >= patience {
		if h.awaited(h.sent[0]) {
			h.a.overdue(h.sent[0].index)
		}
		h.sent = h.sent[1:]
	}
}

// settle holds slots, places the processes and confirms their slots. Where a
// confirmation fails, it begins anew with what is left; each round loses a peer
// or is the last. It returns nil when what is left does not suffice, or ctx has
// ended.
func settle(ctx context.Context, r Requester, a *attempt) []Placement {
	for ctx.Err() == nil {
		holdSlots(ctx, r, a)
		placed, err := a.place()
		if err != nil {
			return nil
		}
		failed := false
		for i, err := range confirm(ctx, r, placed, confirmTimes*a.patience()) {
			a.confirmed(placed[i], err)
			failed = failed || err != nil
		}
		if !failed {
			return placed
		}
	}
	return nil
}

// confirmTimes is how many times the patience of an attempt a Confirm may take: others that
// hold slots take the place of a peer that has gone meanwhile.
const confirmTimes = 3

// confirm asks all peers at once and returns an error or nil for each.
func confirm(ctx context.Context, r Requester, placed []Placement, timeout time.Duration) []error {
	ctx, cancel := context.WithTimeout(ctx, min(timeout, askTimeout))
	defer cancel()
	errs := make([]error, len(placed))
	var wg sync.WaitGroup
	for i, p := range placed {
		wg.Go(func() { errs[i] = r.Confirm(ctx, p.Peer, p.Key, len(p.Processes)) })
	}
	wg.Wait()
	return errs
}

// giveBack releases what placed does not use, also when ctx has ended, which is
// one reason to.
func giveBack(ctx context.Context, r Requester, a *attempt, placed []Placement) {
	answered, silent := a.unused(placed)
	waits := a.need.Waits && placed == nil && !a.hopeless()
	ctx = context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	for _, batch := range []struct {
		peers []p2ppeer.ID
		limit time.Duration
	}{{answered, releaseTimeout}, {silent, silentTimeout}} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, batch.limit)
			defer cancel()
			release(ctx, r, a.need.Job, batch.peers, waits)
		})
	}
	wg.Wait()
}

// release asks all peers at once. What fails is left to the lease (S2).
func release(ctx context.Context, r Requester, job string, peers []p2ppeer.ID, waits bool) {
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() { _ = r.Release(ctx, p, job, waits) })
	}
	wg.Wait()
}

// Backoff bounds: the first pause is about the time that an attempt takes, the
// longest what a user hardly notices beside a job.
const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// Backoff returns how long to wait after failed attempt number attempt (0, 1,
// ...): random, so that two submitters that took half each do not do so again,
// and longer each time, so that one of many gets through.
func Backoff(attempt int, rnd *rand.Rand) time.Duration {
	most := backoffMost
	if attempt < 6 { // 100 ms << 6 is above backoffMost
		most = min(backoffMost, backoffFirst<<max(0, attempt))
	}
	return most/4 + time.Duration(rnd.Int64N(int64(most)))
}

// Pauses of a job in queues: who is in front is to find what has been freed for it soon.
const (
	pausePerPlace = 500 * time.Millisecond
	pauseMost     = 4 * time.Second
)

// Freshness is how long candidates are good for when a job has waited for slots for some time. That
// the peers which were busy are not any more comes to light by asking them; others that have
// come since must be looked for.
func Freshness(waited time.Duration) time.Duration {
	return min(max(waited/2, time.Second), 15*time.Second)
}

// Pause returns how long to wait after a failed attempt: a Backoff, or at most as long as the
// job's place in the queues of peers, which keep slots for it, calls for.
func Pause(attempt int, place Place, rnd *rand.Rand) time.Duration {
	pause := Backoff(attempt, rnd)
	if place == (Place{}) {
		return pause
	}
	most := min(pauseMost, time.Duration(min(place.Place, 100))*pausePerPlace)
	return min(pause, most/2+time.Duration(rnd.Int64N(int64(most/2))))
}
