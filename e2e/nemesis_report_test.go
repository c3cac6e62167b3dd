package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// A tally holds the counts that TestNemesis reports at its end.
type tally struct {
	begun    time.Time
	jobs     map[string]int          // by program
	outcomes map[nemesis.Verdict]int // of jobs
	wrongs   map[nemesis.Verdict]int // failures of the system
	strikes  map[string]int          // strikes carried out, by kind
	lies     map[string]int          // number of jobs with a lying peer, by lie
	felled   map[int]int             // peers that were killed while a job ran, by the number of ranks there
	woke     map[string]int          // targets that were stopped, failed and resumed while the job ran, by kind
	undone   map[string]int          // strikes that the system does not allow, by kind
	spared   int                     // strikes omitted because the job could not survive them
	late     int                     // strikes planned after the end of a job
}

func newTally() *tally {
	return &tally{
		begun: time.Now(), jobs: make(map[string]int),
		outcomes: make(map[nemesis.Verdict]int), wrongs: make(map[nemesis.Verdict]int),
		strikes: make(map[string]int), lies: make(map[string]int), felled: make(map[int]int), woke: make(map[string]int), undone: make(map[string]int),
	}
}

// longRun is the duration after which TestNemesis must have covered everything.
const longRun = 10 * time.Minute

// demand expects that a run has covered enough.
func (t *tally) demand(test *testing.T) {
	test.Helper()
	judged := 0
	for _, n := range t.outcomes {
		judged += n
	}
	switch {
	case judged == 0:
		test.Error("no job was judged")
	case t.took() >= longRun && sum(t.woke) == 0:
		test.Error("no peer that was failed has resumed while the job ran")
	}
	if len(t.undone) > 0 && skip.Forbidden() {
		test.Errorf("where CI is set, every fault must be possible; these were not: %v", t.undone)
	}
}

func (t *tally) took() time.Duration { return time.Since(t.begun).Round(time.Second) }

// String is the report, in Markdown.
func (t *tally) String() string {
	rows := [][]string{{"item", "number"}, {"jobs", fmt.Sprint(sum(t.jobs))}}
	for _, p := range nemesis.Programs {
		rows = append(rows, []string{"– " + p, fmt.Sprint(t.jobs[p])})
	}
	for _, o := range slices.Sorted(maps.Keys(t.outcomes)) {
		rows = append(rows, []string{"jobs with the verdict: " + string(o), fmt.Sprint(t.outcomes[o])})
	}
	rows = append(rows, []string{"faults", fmt.Sprint(sum(t.strikes))})
	for _, s := range slices.Sorted(maps.Keys(t.strikes)) {
		rows = append(rows, []string{"– " + s, fmt.Sprint(t.strikes[s])})
	}
	for _, l := range slices.Sorted(maps.Keys(t.lies)) {
		rows = append(rows, []string{"jobs with a lying peer: " + l, fmt.Sprint(t.lies[l])})
	}
	for _, n := range slices.Sorted(maps.Keys(t.felled)) {
		rows = append(rows, []string{fmt.Sprintf("peers killed with %d of the ranks on them", n), fmt.Sprint(t.felled[n])})
	}
	for _, s := range slices.Sorted(maps.Keys(t.woke)) {
		rows = append(rows, []string{"resumed after they were failed, while the job ran: " + s, fmt.Sprint(t.woke[s])})
	}
	for _, s := range slices.Sorted(maps.Keys(t.undone)) {
		rows = append(rows, []string{"planned, but not possible on this machine: " + s, fmt.Sprint(t.undone[s])})
	}
	rows = append(rows,
		[]string{"planned, but the job had ended", fmt.Sprint(t.late)},
		[]string{"planned, but more than the job must survive", fmt.Sprint(t.spared)})
	for _, v := range nemesis.Wrongs {
		rows = append(rows, []string{"**" + string(v) + "**", fmt.Sprint(t.wrongs[v])})
	}
	return markdown.Table(rows)
}

func sum(counts map[string]int) int {
	all := 0
	for _, n := range counts {
		all += n
	}
	return all
}
