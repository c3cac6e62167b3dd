package replication

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// recalls answers new replicas of this rank, which request its message log from the master.
type recalls struct {
	*core
	agreement *agreement
	pending   map[int]*recall // per replica: its last request
}

func newRecalls(c *core, a *agreement) *recalls {
	return &recalls{core: c, agreement: a, pending: make(map[int]*recall)}
}

// A recall is a new replica's request for a part of this process's message log.
type recall struct {
	position uint64
	answered bool
}

// receive answers q at once, or as soon as this process decides.
func (r *recalls) receive(q view.Process, position uint64) {
	r.pending[q.Replica] = &recall{position: position}
	r.answer(q)
}

// answer answers q once this process decides. The first piece also waits until q has all outcomes that
// this process holds. Only then q has all outcomes that may have been seen and are not in this process's
// log.
func (r *recalls) answer(q view.Process) {
	c := r.pending[q.Replica]
	if c == nil || c.answered || !r.agreement.leads() {
		return
	}
	if c.position == 0 && !r.agreement.decisions.reached(q.Replica) {
		return
	}
	c.answered = true
	r.out.Recalls = append(r.out.Recalls, protection.Recall{To: q, Position: c.position})
}

// answerAgain repeats the answer to q, because the channel to it may have lost the last one.
func (r *recalls) answerAgain(q view.Process) {
	if c := r.pending[q.Replica]; c != nil {
		r.receive(q, c.position)
	}
}

// answerAll answers pending requests, and drops those of processes that are no longer live.
func (r *recalls) answerAll() {
	if len(r.pending) == 0 {
		return
	}
	for k := range r.v.R {
		q := view.Process{Rank: r.self.Rank, Replica: k}
		if !r.v.Live(q) {
			delete(r.pending, k)
		}
		r.answer(q)
	}
}
