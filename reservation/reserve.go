package reservation

import (
	"context"
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
	// Hold asks for up to slots of the peer's slots.
	Hold(ctx context.Context, peer p2ppeer.ID, job string, slots int) (Grant, error)
	// Confirm keeps slots of those that key holds and gives back the rest.
	Confirm(ctx context.Context, peer p2ppeer.ID, key Key, slots int) error
	// Release gives back what the job holds at the peer and has not started.
	Release(ctx context.Context, peer p2ppeer.ID, job string) error
}

// A Placement is the processes that one peer is to run, and the key to its
// slots for them.
type Placement struct {
	Peer      p2ppeer.ID
	Key       Key
	Processes []view.Process
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
	release(ctx, with, r.Job, peers)
}

// Reserve makes one attempt to hold and confirm slots for all of need's
// processes at the candidates, given nearest first. It is all or nothing: when
// it fails, everything is given back by the time it returns, except at peers
// that do not answer, where the leases end.
//
// The error is a *ShortageError when the candidates do not suffice. The caller
// then waits for a Backoff, discovers candidates anew and tries again under the
// same job name, for as long as its user wants.
func Reserve(ctx context.Context, r Requester, candidates []Candidate, need Need) (*Reservation, error) {
	if err := need.validate(); err != nil {
		return nil, fmt.Errorf("reserve slots for job %q: %w", need.Job, err)
	}
	a := newAttempt(candidates, need)
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
	grant Grant
	err   error
}

func (a *attempt) take(got answer) {
	if got.err != nil {
		a.refused(got.index, reasonOf(got.err))
		return
	}
	a.granted(got.index, got.grant)
}

// holdSlots sends what the attempt asks, until every answer is in, or enough
// are and the others have had as long again. Those that it then stops waiting
// for count as silent, unless their grant comes in at the last moment.
func holdSlots(ctx context.Context, r Requester, a *attempt) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan answer)
	send := func(asks []ask) {
		for _, q := range asks {
			peer := a.peers[q.index].Peer
			go func() { // ends with its answer, which is always read
				ctx, cancel := context.WithTimeout(ctx, askTimeout)
				defer cancel()
				g, err := r.Hold(ctx, peer, a.need.Job, q.slots)
				answers <- answer{index: q.index, grant: g, err: err}
			}()
		}
	}
	began := time.Now()
	var grace <-chan time.Time
	for send(a.next()); a.pending() && ctx.Err() == nil; {
		if grace == nil && a.enough() {
			grace = time.After(max(minGrace, time.Since(began)))
		}
		select {
		case got := <-answers:
			a.take(got)
			send(a.next())
		case <-grace:
			stop()
		case <-ctx.Done():
		}
	}
	stop()
	for a.pending() {
		a.take(<-answers)
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
		for i, err := range confirm(ctx, r, placed) {
			a.confirmed(placed[i], err)
			failed = failed || err != nil
		}
		if !failed {
			return placed
		}
	}
	return nil
}

// confirm asks all peers at once and returns an error or nil for each.
func confirm(ctx context.Context, r Requester, placed []Placement) []error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
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
	granted, silent := a.unused(placed)
	ctx = context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	for _, batch := range []struct {
		peers []p2ppeer.ID
		limit time.Duration
	}{{granted, releaseTimeout}, {silent, silentTimeout}} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, batch.limit)
			defer cancel()
			release(ctx, r, a.need.Job, batch.peers)
		})
	}
	wg.Wait()
}

// release asks all peers at once. What fails is left to the lease (S2).
func release(ctx context.Context, r Requester, job string, peers []p2ppeer.ID) {
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() { _ = r.Release(ctx, p, job) })
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
