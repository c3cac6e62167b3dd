package submit

import (
	"context"
	"crypto/sha256"
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
// The live replicas here are those that count (see State.Counting), that their owner has not suspended
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

// A confirmation compares the accounts of a job's replicas.
type confirmation struct {
	j        *run
	state    *job.State
	peers    *membership
	accounts *job.Accounts        // accounts of the replicas that have ended; nil: job without replicas
	ran      func() time.Duration // see execution.ran

	// while is execution.handleWhile.
	while func(ctx context.Context, most time.Duration, condition func() bool) *job.Result
}

// newConfirmation returns the confirmation of a job that starts.
func newConfirmation(j *run, state *job.State, peers *membership, outputs *outputs) *confirmation {
	c := &confirmation{j: j, state: state, peers: peers}
	if j.req.R > 1 {
		c.accounts = &job.Accounts{
			Tolerant: j.req.OnDivergence == Warn, Counting: state.Counting,
			Shown:         func(rank int) (job.Printed, bool) { return outputs.printedBy(state.OutputView(), rank) },
			OutputLeaders: func(rank int) []view.Process { return outputs.outputLeaders(state.View(), rank) },
			Name: func(p view.Process) string {
				return fmt.Sprintf("rank %d replica %d on peer %s", p.Rank, p.Replica, peers.peerOf(p))
			},
		}
	}
	return c
}

// add handles a peer's account of its process p. The error means that the account is invalid.
func (c *confirmation) add(p view.Process, m *jobpb.Account) (*job.Result, error) {
	a, err := accountOf(m, c.state.View())
	if err != nil || c.accounts == nil || c.state.View().State(p) == view.Failed {
		return nil, err
	}
	if note := c.accounts.Add(p, a); note != "" {
		c.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return c.judge(false), nil
}

// judge applies the verdict on the accounts: messages to the user, and perhaps a result.
func (c *confirmation) judge(final bool) *job.Result {
	notes, r := c.accounts.Judge(c.j.req.N, final)
	for _, note := range notes {
		c.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return r
}

// await waits until the answer of the job, which is done, is confirmed, and returns the
// result.
func (c *confirmation) await(ctx context.Context) job.Result {
	if c.accounts == nil {
		return c.state.Answer()
	}
	if r := c.confirm(ctx); r != nil {
		return *r
	}
	owed := func() bool { return len(c.accounts.Owing(c.confirmingReplicas())) > 0 }
	if r := c.while(ctx, min(c.ran()/furtherAccountsPart, furtherAccountsMost), owed); r != nil {
		return *r
	}
	if r := c.judge(true); r != nil {
		return *r
	}
	return c.state.Answer()
}

// confirm waits until the answer is confirmed. It returns nil if it is.
func (c *confirmation) confirm(ctx context.Context) *job.Result {
	if c.accounts.Tolerant {
		return nil
	}
	unconfirmed := func() bool { return len(c.accounts.Unconfirmed(c.confirmingReplicas())) > 0 }
	if r := c.while(ctx, confirmQuietly, unconfirmed); r != nil || !unconfirmed() {
		return r
	}
	c.j.warn("the job is done; waiting for its answer to be confirmed by " + c.peers.whereAll(c.accounts.Unconfirmed(c.confirmingReplicas())))
	premature := func() bool { return c.accounts.Premature(c.confirmingReplicas()) }
	for premature() {
		if r := c.while(ctx, pulsePeriod, premature); r != nil {
			return r
		}
	}
	most := max(c.j.s.waits.confirm, confirmFactor*c.ran())
	if r := c.while(ctx, most, unconfirmed); r != nil || !unconfirmed() {
		return r
	}
	if r := c.judge(true); r != nil {
		return r
	}
	return c.accounts.UnconfirmedAfter(c.confirmingReplicas(), most)
}

// confirmingReplicas returns the live replicas, whose accounts can confirm the answer: those that
// count, have not ended unsuccessfully, are not suspended, and whose peer has not been given up.
func (c *confirmation) confirmingReplicas() []view.Process {
	return slices.DeleteFunc(c.state.Working(), func(p view.Process) bool { return !c.peers.reaches(p) || c.peers.suspended(p) })
}

// accountOf decodes a peer's account of one of its processes in a job with view v.
func accountOf(m *jobpb.Account, v view.View) (a job.Account, err error) {
	a = job.Account{Summed: m.Summed, Digested: m.Digested, Printed: job.Printed{Bytes: m.Printed}}
	if a.Sums, err = m.Sent(v); err != nil {
		return a, err
	}
	if copy(a.Printed.Digest[:], m.Digest) != len(m.Digest) || m.Digested && len(m.Digest) != sha256.Size {
		return a, fmt.Errorf("digest of %d bytes", len(m.Digest))
	}
	return a, nil
}
