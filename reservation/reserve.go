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

// Timeouts of Reserve.
const (
	// askTimeout bounds one Hold or Confirm. It is longer than a dial and a few round trips across the
	// world, and short enough for an interactive user.
	askTimeout = 3 * time.Second
	// minGrace is the least time that slower peers get to answer once the job could be placed. They may
	// include nearer or better peers.
	minGrace = 50 * time.Millisecond
	// releaseTimeout bounds the release at peers that have answered before.
	releaseTimeout = 2 * time.Second
	// silentTimeout bounds the release at peers that have not answered. It suffices to send the request,
	// which a peer processes even if the sender does not wait for the answer.
	silentTimeout = 100 * time.Millisecond
)

// A Requester sends requests to peers on the submitter's behalf. Errors carry a Reason if there is one.
// Every method returns soon after its context ends.
type Requester interface {
	// Hold asks for slots; the Requester determines the request's Submitter.
	Hold(ctx context.Context, peer p2ppeer.ID, q Request) (Grant, error)
	// Confirm keeps the given number of the slots that key holds and releases the rest.
	Confirm(ctx context.Context, peer p2ppeer.ID, key Key, slots int) error
	// Release gives back the slots that the job holds at the peer and has not used. Unless waits is true,
	// the job leaves the peer's queue.
	Release(ctx context.Context, peer p2ppeer.ID, job string, waits bool) error
}

// A Placement is the set of processes that one peer is to run, and the key to its slots.
type Placement struct {
	Peer      p2ppeer.ID
	Key       Key
	Processes []view.Process
	Machine   string // see Grant.Machine
}

// A Reservation contains the confirmed slots for every process of a job. A key that is not redeemed within
// ConfirmedLease expires.
type Reservation struct {
	Job        string
	Placements []Placement // ordered by the strategy; no peer twice
}

// Release gives back every slot whose process has not started. It returns when all peers have answered or
// ctx has ended. Slots at unreachable peers expire.
func (r *Reservation) Release(ctx context.Context, with Requester) {
	var peers []p2ppeer.ID
	for _, p := range r.Placements {
		peers = append(peers, p.Peer)
	}
	release(ctx, with, r.Job, peers, false)
}

// Leave removes a job from the queues of peers, and gives back the slots that the job holds there and has
// not used. A caller that gives up calls it. Leave returns when all peers have answered or ctx has ended.
// At unreachable peers, queue places and slots expire.
func Leave(ctx context.Context, with Requester, job string, peers []p2ppeer.ID) {
	release(ctx, with, job, peers, false)
}

// Reserve makes one attempt to hold and confirm slots for all of need's processes at the candidates,
// which are given nearest first. It is all or nothing: if it fails, it has released all slots when it
// returns, except at peers that do not answer, where the leases expire.
//
// The error is a *ShortageError if the candidates do not suffice. The caller then waits for a Pause,
// discovers candidates again and retries under the same job name, for as long as its user wants. A job
// that Waits keeps its place in the queues meanwhile.
func Reserve(ctx context.Context, r Requester, candidates []Candidate, need Need) (*Reservation, error) {
	if err := need.validate(); err != nil {
		return nil, fmt.Errorf("reserve slots for job %q: %w", need.Job, err)
	}
	a := newAttempt(candidates, need)
	if a.hopeless() {
		a.need.Waits = false // waiting would only block other jobs
	}
	placed := settle(ctx, r, a)
	if placed == nil || ctx.Err() != nil {
		err := failure(ctx, a)
		releaseUnused(ctx, r, a, nil)
		return nil, fmt.Errorf("reserve slots for job %q: %w", need.Job, err)
	}
	releaseUnused(ctx, r, a, placed)
	return &Reservation{Job: need.Job, Placements: placed}, nil
}

// failure returns why the attempt ended: too few slots, the end of ctx, or both.
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

// An answer is the result of an ask.
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
	if q, ok := errors.AsType[*queued](got.err); ok {
		a.queued(got.index, q)
		return
	}
	a.refused(got.index, why)
}

// holdSlots sends the attempt's requests and collects the answers. It returns when all answers have
// arrived, apart from late ones of peers marked Unheard. Once enough slots are granted, it waits for the
// others only as long again. While further answers may still separate the replicas of a rank, it waits up
// to maxResponseTimeout instead. Peers that it stops waiting for count as silent, unless their grant
// arrives at the last moment.
func holdSlots(ctx context.Context, r Requester, a *attempt) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &asking{a: a, r: r, answers: make(chan answer, len(a.peers)), began: time.Now()}
	h.send(ctx)
	for a.worthWaiting() && ctx.Err() == nil {
		h.suffice()
		if h.grace != nil && !a.awaited() {
			break // late peers have already had more time than that
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

// An asking is the state of a running holdSlots.
type asking struct {
	a       *attempt
	r       Requester
	answers chan answer
	began   time.Time
	sent    []sending        // requests that may be unanswered, oldest first
	grace   <-chan time.Time // set when no better answers are expected
	choice  <-chan time.Time // set when every process can be placed
}

// suffice starts the final timers once every process can be placed.
func (h *asking) suffice() {
	if h.grace != nil || !h.a.enough() {
		return
	}
	if h.choice == nil {
		h.choice = time.After(maxResponseTimeout)
	}
	if !h.a.waits() {
		h.grace = time.After(max(minGrace, time.Since(h.began)))
	}
}

// A sending is a request and the time when it was sent.
type sending struct {
	ask
	at time.Time
}

// awaited reports whether s is still unanswered. A later request to the same peer may have replaced it.
func (h *asking) awaited(s sending) bool {
	p := h.a.peers[s.index]
	return p.pending && p.wanted == s.slots
}

// send sends the attempt's next requests.
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

// takeMore processes all answers that have already arrived, so that the next requests are computed only
// once.
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

// lateness returns a channel that fires when the oldest unanswered request becomes late.
func (h *asking) lateness() <-chan time.Time {
	for len(h.sent) > 0 && !h.awaited(h.sent[0]) {
		h.sent = h.sent[1:]
	}
	if len(h.sent) == 0 {
		return nil
	}
	return time.After(time.Until(h.sent[0].at.Add(h.a.responseTimeout())))
}

// hedge marks late requests, so that the attempt asks other peers in their place.
func (h *asking) hedge() {
	timeout := h.a.responseTimeout()
	for len(h.sent) > 0 && time.Since(h.sent[0].at) >= timeout {
		if h.awaited(h.sent[0]) {
			h.a.overdue(h.sent[0].index)
		}
		h.sent = h.sent[1:]
	}
}

// settle holds slots, places the processes and confirms their slots. If a confirmation fails, it repeats
// with the remaining peers; each round excludes a peer or is the last. It returns nil if the remaining
// peers do not suffice or ctx has ended.
func settle(ctx context.Context, r Requester, a *attempt) []Placement {
	for ctx.Err() == nil {
		holdSlots(ctx, r, a)
		placed, err := a.place()
		if err != nil {
			return nil
		}
		failed := false
		for i, err := range confirm(ctx, r, placed, confirmTimes*a.responseTimeout()) {
			a.confirmed(placed[i], err)
			failed = failed || err != nil
		}
		if !failed {
			return placed
		}
	}
	return nil
}

// confirmTimes is the ratio of the timeout of a Confirm to the attempt's responseTimeout. If a peer has left
// meanwhile, others that hold slots replace it.
const confirmTimes = 3

// confirm asks all peers at once and returns one error or nil for each.
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

// releaseUnused releases the slots that placed does not use, even after ctx has ended.
func releaseUnused(ctx context.Context, r Requester, a *attempt, placed []Placement) {
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

// release asks all peers at once. Slots that it fails to release expire with their lease (S2).
func release(ctx context.Context, r Requester, job string, peers []p2ppeer.ID, waits bool) {
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() { _ = r.Release(ctx, p, job, waits) })
	}
	wg.Wait()
}

// Backoff bounds. The first pause is about as long as an attempt; the longest is short compared with a
// job.
const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// Backoff returns how long to wait after failed attempt number attempt (0, 1, ...). It is random, so that
// two submitters with half of the slots each do not collide again. It grows with each attempt, so that
// one of many submitters gets through.
func Backoff(attempt int, rnd *rand.Rand) time.Duration {
	most := backoffMost
	if attempt < 6 { // 100 ms << 6 is above backoffMost
		most = min(backoffMost, backoffFirst<<max(0, attempt))
	}
	return most/4 + time.Duration(rnd.Int64N(int64(most)))
}

// Pauses of a queued job. The job in front should soon find slots that have become free for it.
const (
	pausePerPlace = 500 * time.Millisecond
	pauseMost     = 4 * time.Second
)

// Freshness returns how long candidates stay usable after a job has waited for slots for the given time.
// Asking known peers reveals which of them are no longer busy, but new peers have to be discovered.
func Freshness(waited time.Duration) time.Duration {
	return min(max(waited/2, time.Second), 15*time.Second)
}

// Pause returns how long to wait after a failed attempt: a Backoff, limited according to the job's place
// in the peers' queues. Peers keep slots for the jobs in front, which should return soon.
func Pause(attempt int, place Place, rnd *rand.Rand) time.Duration {
	pause := Backoff(attempt, rnd)
	if place == (Place{}) {
		return pause
	}
	most := min(pauseMost, time.Duration(min(place.Place, 100))*pausePerPlace)
	return min(pause, most/2+time.Duration(rnd.Int64N(int64(most/2))))
}
