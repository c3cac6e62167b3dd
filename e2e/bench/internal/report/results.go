package report

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// A Contender is one implementation under test, a library or a connection, with a number of
// processes.
type Contender struct {
	Name      string
	Processes int
}

// A key identifies a measurement that is made once per round.
type key struct {
	Contender
	Test  string
	Bytes int
}

// Results holds the results: for each key, one result for each round that produced one.
type Results struct {
	values     map[key]map[int]plan.Result
	contenders []Contender // in the order of tables
	rounds     int
}

// NewResults returns empty results that show contenders in this order.
func NewResults(contenders []Contender) *Results {
	return &Results{values: make(map[key]map[int]plan.Result), contenders: contenders}
}

// Add records a result of a contender in a round; rounds count from 0.
func (r *Results) Add(round int, c Contender, result plan.Result) {
	key := key{c, result.Test, result.Bytes}
	if r.values[key] == nil {
		r.values[key] = make(map[int]plan.Result)
	}
	r.values[key][round] = result
	r.rounds = max(r.rounds, round+1)
}

// Rounds returns the number of rounds with results.
func (r *Results) Rounds() int { return r.rounds }

// Bytes returns the sizes at which a test was run with this number of processes.
func (r *Results) Bytes(test string, processes int) []int {
	var sizes []int
	for key := range r.values {
		if key.Test == test && key.Processes == processes && !slices.Contains(sizes, key.Bytes) {
			sizes = append(sizes, key.Bytes)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// contendersOf returns the contenders that ran a test with this number of processes.
func (r *Results) contendersOf(test string, processes int) []Contender {
	var made []Contender
	for _, c := range r.contenders {
		if c.Processes == processes && slices.ContainsFunc(r.Bytes(test, processes), func(bytes int) bool {
			return len(r.values[key{c, test, bytes}]) > 0
		}) {
			made = append(made, c)
		}
	}
	return made
}

// seconds returns the time of a key over the rounds.
func (r *Results) seconds(key key) Figure {
	return r.figure(key, func(p plan.Result) (float64, bool) { return p.Seconds, true })
}

// figure returns a value of a key's results over the rounds.
func (r *Results) figure(key key, of func(plan.Result) (float64, bool)) Figure {
	var samples []float64
	for _, p := range r.values[key] {
		if x, ok := of(p); ok {
			samples = append(samples, x)
		}
	}
	return FigureOf(samples)
}
