package submit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A job is done when one replica of each rank has finished. Its answer is confirmed when, for each
// rank, most live replicas have ended with the same account (V4). Without this rule, the answer of
// a lying replica that ends long before the others would be the only one. With two replicas both
// must end.
//
// The live replicas here are those that count (see counting), that their owner has not suspended
// and whose peer has not been given up. With three or more, one that ends long before most proves
// nothing, so the job continues until half of them have ended. From then on it waits for
// waits.confirm, or for confirmFactor times as long as it ran if that is longer. A replica that has
// not ended by then hangs, runs on a far slower machine, or lies about having begun; or the one
// that has ended lies. With two replicas the submitter cannot know which, so the job ends with
// StatusDiverged and a message that names both. With --on-divergence warn the job waits for no
// confirmation.

const (
	// furtherAccountsPart and furtherAccountsMost limit how long a job waits for further accounts
	// once its answer is confirmed: a twentieth of the time that it ran, at most one second. They
	// only show which replica lies.
	furtherAccountsPart = 20
	furtherAccountsMost = time.Second

	// confirmFactor is how many times as long as it ran a job waits for its answer to be confirmed.
	confirmFactor = 4

	// confirmQuietly is how long the job waits before it tells the user which replicas it waits
	// for.
	confirmQuietly = 2 * time.Second
)

// newAccounts returns the accounts of a job that starts.
func (e *execution) newAccounts() *job.Accounts {
	return &job.Accounts{
		Tolerant: e.j.req.OnDivergence == Warn, Counting: e.state.Counting,
		Shown:    func(rank int) (job.Printed, bool) { return e.outputs.printedBy(e.state.View(), rank) },
		Speakers: func(rank int) []view.Process { return e.outputs.speakers(e.state.View(), rank) },
		Name: func(p view.Process) string {
			return fmt.Sprintf("rank %d replica %d on peer %s", p.Rank, p.Replica, e.peers.peerOf(p))
		},
	}
}

// account handles a peer's account of its process p.
func (e *execution) account(l *link, p view.Process, m *jobpb.Account) *job.Result {
	a, err := accountOf(m, e.state.View())
	if err != nil {
		return e.protocolError(l, err)
	}
	if e.accounts == nil || e.state.View().State(p) == view.Failed {
		return nil
	}
	if note := e.accounts.Add(p, a); note != "" {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return e.judge(false)
}

// judge applies the verdict on the accounts: messages to the user, and perhaps a result.
func (e *execution) judge(final bool) *job.Result {
	notes, r := e.accounts.Judge(e.j.req.N, final)
	for _, note := range notes {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return r
}

// awaitConfirmation waits until the answer of the job, which is done, is confirmed, and returns the
// result.
func (e *execution) awaitConfirmation(ctx context.Context) job.Result {
	if e.accounts == nil {
		return e.state.Answer()
	}
	if r := e.confirm(ctx); r != nil {
		return *r
	}
	owed := func() bool { return len(e.accounts.Owing(e.confirmingReplicas())) > 0 }
	if r := e.handleWhile(ctx, min(e.ran()/furtherAccountsPart, furtherAccountsMost), owed); r != nil {
		return *r
	}
	if r := e.judge(true); r != nil {
		return *r
	}
	return e.state.Answer()
}

// ran returns how long the processes have been running, or, for a resumed job, how long the job has
// existed.
func (e *execution) ran() time.Duration {
	if e.resumption != nil {
		return e.elapsed()
	}
	return time.Since(e.begun)
}

// confirm waits until the answer is confirmed. It returns nil if it is.
func (e *execution) confirm(ctx context.Context) *job.Result {
	if e.accounts.Tolerant {
		return nil
	}
	unconfirmed := func() bool { return len(e.accounts.Unconfirmed(e.confirmingReplicas())) > 0 }
	if r := e.handleWhile(ctx, confirmQuietly, unconfirmed); r != nil || !unconfirmed() {
		return r
	}
	e.j.warn("the job is done; waiting for its answer to be confirmed by " + e.peers.whereAll(e.accounts.Unconfirmed(e.confirmingReplicas())))
	premature := func() bool { return e.accounts.Premature(e.confirmingReplicas()) }
	for premature() {
		if r := e.handleWhile(ctx, pulsePeriod, premature); r != nil {
			return r
		}
	}
	most := max(e.j.s.waits.confirm, confirmFactor*e.ran())
	if r := e.handleWhile(ctx, most, unconfirmed); r != nil || !unconfirmed() {
		return r
	}
	if r := e.judge(true); r != nil {
		return r
	}
	return e.accounts.UnconfirmedAfter(e.confirmingReplicas(), most)
}

// handleWhile handles events while a condition holds, for at most the given time. Time in which this
// process did not run, or was cut off, does not count: it could not receive messages.
func (e *execution) handleWhile(ctx context.Context, most time.Duration, condition func() bool) *job.Result {
	for condition() && most > 0 {
		before := time.Now()
		late, cancel := context.WithTimeout(ctx, most)
		r := e.handleNext(ctx, late.Done())
		cancel()
		switch {
		case r != nil:
			return r
		case ctx.Err() != nil:
			r := stoppedBy(ctx, e.j.req)
			return &r
		case !e.partitioned:
			most -= min(time.Since(before), 2*pulsePeriod)
		}
	}
	return nil
}

// confirmingReplicas returns the live replicas, whose accounts can confirm the answer: those that
// count, have not ended unsuccessfully, are not suspended, and whose peer has not been given up.
func (e *execution) confirmingReplicas() []view.Process {
	return slices.DeleteFunc(e.state.Working(), func(p view.Process) bool { return !e.peers.reaches(p) || e.peers.suspended(p) })
}
