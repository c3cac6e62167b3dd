package e2e

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// judge expects the right answer, or the right reason for a missing one. It also expects that no
// process was failed without a fault that explains it.
func (b *battle) judge() {
	b.t.Helper()
	e := b.ending
	e.Status = b.job.wait()
	b.chronicle.following.Wait()
	b.log = append(b.log, b.chronicle.notes...)
	if last := b.job.stdout.lastWritten(); !last.IsZero() {
		b.note("last output at %v", last.Sub(b.begun).Round(time.Millisecond))
	}
	b.note("exit status %d", e.Status)
	e.Exposed, e.Outvoted = b.exposed(), b.outvoted()
	for p := range b.chronicle.abandoned { // processes that did not answer when the others of their rank failed
		e.Exposed = append(e.Exposed, p.Rank)
	}
	for _, j := range b.jobs {
		e.Said += strings.Join(strings.Fields(j.stderr.String()), " ") + " " // unfold the lines
	}
	e.Answer = b.program.right(b.printed(), b.jobs[0].cmd.Dir)
	verdict := e.Judge()
	if verdict.Wrong() {
		b.fail(verdict, "exit status %d; ranks that may have been lost: %v; error in the answer: %v", e.Status, e.Exposed, e.Answer)
	}
	if all := b.unprovoked(); e.Watched() && len(all) > 0 {
		b.fail(nemesis.LiveFailed, "failed without a fault: %v", all)
	}
	b.tally.outcomes[verdict]++
}

// printed returns the combined output of all p2pruns of the job.
func (b *battle) printed() string {
	most := 1 // a line may have been written just before p2prun was killed, and not recorded
	if b.plan.Client {
		most = math.MaxInt // a peer repeats everything that was not acknowledged
	}
	all := ""
	for _, j := range b.jobs {
		all = nemesis.Continued(all, j.stdout.String(), most)
	}
	return all
}

// unprovoked returns the processes that were failed without a fault that explains it.
func (b *battle) unprovoked() []nemesis.Failure {
	for p, since := range b.latecomers() {
		b.harmed[p] = since
	}
	return nemesis.Unprovoked(b.chronicle.failures, b.harmed)
}

// latecomers returns the processes that joined while the job ran and may be failed, with the time
// from which that holds.
func (b *battle) latecomers() map[nemesis.Process]time.Duration {
	harmed := make(map[nemesis.Process]time.Duration)
	for _, f := range b.chronicle.failures {
		if f.Replica < b.plan.R {
			continue
		}
		id, known := b.chronicle.placed[f.Process]
		if since, struck := b.since[id]; struck {
			harmed[f.Process] = since
		} else if !known || b.early != nil && id == b.early.id ||
			strings.Contains(f.Why, "had yet to be brought up to date when its rank was done") {
			// It has never caught up with its rank.
			harmed[f.Process] = 0
		}
	}
	return harmed
}

// fail ends the test of the round.
func (b *battle) fail(v nemesis.Verdict, format string, args ...any) {
	b.t.Helper()
	b.failing = v
	b.t.Fatalf("%s: %s", v, fmt.Sprintf(format, args...))
}

// outvoted reports whether the majority of the voters on views may have been lost before others
// replaced them. The voters are the submitter's peer and two peers of the job, or four in a job
// with at least four.
func (b *battle) outvoted() bool {
	peers := make(map[string]bool)
	for _, id := range b.jobs[0].placed {
		peers[id] = true
	}
	lost := len(b.since)
	if b.voteless {
		lost++
	}
	if len(peers) < 4 {
		return lost > 1
	}
	return lost > 2
}

// exposed returns the ranks whose replicas may all have been lost.
func (b *battle) exposed() []int {
	var ranks []int
	for rank := range b.plan.N {
		safe := 0
		for replica := range b.plan.R {
			if b.harm[nemesis.Process{Rank: rank, Replica: replica}] == nemesis.None {
				safe++
			}
		}
		if safe == 0 {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
