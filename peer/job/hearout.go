package job

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// A job is done when one replica of each rank has finished. The others are about to,
// and what they have done is to be compared.

// How long a job that is done waits for the other replicas: as a part of the time that
// it ran, and at most.
const (
	hearOutPart = 20
	hearOutMost = time.Second
)

// newAccounts returns the accounts of the job; nothing is known.
func (e *execution) newAccounts() *accounts {
	e.printed = make([]printedHash, e.j.req.N)
	for rank := range e.printed {
		e.printed[rank].Hash = sha256.New()
	}
	return &accounts{
		of: make(map[view.Process]account), odd: make(map[view.Process]bool),
		tolerant: e.j.req.OnDivergence == Warn, shown: e.printedBy, counting: e.watch.counting,
		name: func(p view.Process) string {
			return fmt.Sprintf("rank %d replica %d on peer %s", p.Rank, p.Replica, e.peerOf(p))
		},
	}
}

// A printedHash is of what the user has got of a rank's standard output.
type printedHash struct {
	hash.Hash
	bytes uint64
}

func (h *printedHash) add(b []byte) {
	h.Write(b)
	h.bytes += uint64(len(b))
}

// printedBy returns what the user has got of a rank's standard output, and would get if
// the job were over.
func (e *execution) printedBy(rank int) printed {
	h := e.printed[rank]
	tail := e.emission.Tail(e.watch.View(), rank, Stdout)
	all := sha256.New()
	if len(tail) == 0 {
		all = h.Hash
	} else if clone, err := h.Hash.(hash.Cloner).Clone(); err == nil {
		all = clone
		all.Write(tail)
	}
	return printed{Bytes: h.bytes + uint64(len(tail)), Digest: [sha256.Size]byte(all.Sum(nil))}
}

// account takes what a peer says that process p has done in all.
func (e *execution) account(l *link, p view.Process, m *jobpb.Account) *Result {
	a, err := accountOf(m, e.watch.View())
	if err != nil {
		return e.breach(l, err)
	}
	if e.accounts == nil || e.watch.View().State(p) == view.Failed {
		return nil
	}
	if note := e.accounts.Add(p, a); note != "" {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return e.judge(false)
}

// judge draws the conclusion from the accounts.
func (e *execution) judge(final bool) *Result {
	notes, r := e.accounts.Judge(e.j.req.N, final)
	for _, note := range notes {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	return r
}

// hearOut waits a moment for the accounts of the replicas that are about to end, and
// returns the result of the job, which has begun at a time and is done.
func (e *execution) hearOut(ctx context.Context, begun time.Time) Result {
	done := Result{Status: StatusOK}
	if e.accounts == nil {
		return done
	}
	late, cancel := context.WithTimeout(ctx, min(time.Since(begun)/hearOutPart, hearOutMost))
	defer cancel()
	for e.owed() && late.Err() == nil {
		if r := e.turn(ctx, late.Done()); r != nil {
			return *r
		}
	}
	if r := e.judge(true); r != nil {
		return *r
	}
	return done
}

// owed reports whether a replica that has done its work has not accounted for it.
func (e *execution) owed() bool {
	for _, p := range e.watch.working() {
		if _, ok := e.accounts.of[p]; !ok && e.reaches(p) {
			return true
		}
	}
	return false
}
