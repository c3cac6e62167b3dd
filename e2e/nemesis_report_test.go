package e2e

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A tally is what TestNemesis reports at its end.
type tally struct {
	begun    time.Time
	jobs     map[string]int // by program
	strikes  map[string]int // carried out, by kind
	spared   int            // strikes that would have been more than a job has to survive
	late     int            // strikes at jobs that had ended
	outcomes map[string]int
	failures map[string]int // of the product
}

func newTally() *tally {
	return &tally{
		begun: time.Now(), jobs: make(map[string]int), strikes: make(map[string]int),
		outcomes: make(map[string]int), failures: make(map[string]int),
	}
}

func (t *tally) took() time.Duration { return time.Since(t.begun).Round(time.Second) }

// failureKinds are all that a job can do wrong.
var failureKinds = []string{"wrong answer", "wrong status", "hang", "leftovers"}

// String is the report, in Markdown.
func (t *tally) String() string {
	rows := [][]string{{"what", "how many"}, {"jobs", fmt.Sprint(sum(t.jobs))}}
	for _, p := range nemesis.Programs {
		rows = append(rows, []string{"– " + p, fmt.Sprint(t.jobs[p])})
	}
	for _, o := range slices.Sorted(maps.Keys(t.outcomes)) {
		rows = append(rows, []string{"jobs that ended so: " + o, fmt.Sprint(t.outcomes[o])})
	}
	rows = append(rows, []string{"faults", fmt.Sprint(sum(t.strikes))})
	for _, s := range slices.Sorted(maps.Keys(t.strikes)) {
		rows = append(rows, []string{"– " + s, fmt.Sprint(t.strikes[s])})
	}
	rows = append(rows,
		[]string{"planned, but the job had ended", fmt.Sprint(t.late)},
		[]string{"planned, but more than the job has to survive", fmt.Sprint(t.spared)})
	for _, f := range failureKinds {
		rows = append(rows, []string{"**" + f + "**", fmt.Sprint(t.failures[f])})
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
