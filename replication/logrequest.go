package replication

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// logRequests answers new replicas of this rank, which request its message log from the master.
type logRequests struct {
	*core
	agreement *agreement
	pending   map[int]*logRequest // per replica: its last request
}

func newLogRequests(c *core, a *agreement) *logRequests {
	return &logRequests{core: c, agreement: a, pending: make(map[int]*logRequest)}
}

// A logRequest is a new replica's request for a part of this process's message log.
type logRequest struct {
	position uint64
	answered bool
}

// receive answers q at once, or as soon as this process decides.
func (r *logRequests) receive(q view.Process, position uint64) {
	r.pending[q.Replica] = &logRequest{position: position}
	r.answer(q)
}

// answer answers q once this process decides. The first piece also waits until q has all outcomes that this
// process holds. Only then does q have all outcomes that a program may have seen and that are not in this
// process's log.
func (r *logRequests) answer(q view.Process) {
	c := r.pending[q.Replica]
	if c == nil || c.answered || !r.agreement.leads() {
		return
	}
	if c.position == 0 && !r.agreement.decisions.reached(q.Replica) {
		return
	}
	c.answered = true
	r.out.LogRequests = append(r.out.LogRequests, protection.LogRequest{To: q, Position: c.position})
}

// answerAgain repeats the answer to q, because the channel to it may have lost the last one.
func (r *logRequests) answerAgain(q view.Process) {
	if c := r.pending[q.Replica]; c != nil {
		r.receive(q, c.position)
	}
}

// answerAll answers pending requests, and drops those of processes that are no longer live.
func (r *logRequests) answerAll() {
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
