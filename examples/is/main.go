package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

var kernel = npb.Kernel{Name: "is", Classes: []string{"S", "W", "A", "B"}, Run: run}

func main() { kernel.Main() }

func run(r *npb.Run) (npb.Result, error) {
	if r.Size() > maxRanks {
		return npb.Result{}, fmt.Errorf("%w: at most %d ranks, not %d", npb.ErrUsage, maxRanks, r.Size())
	}
	class := classes[r.Class]
	s, err := newSorter(r, class)
	if err != nil {
		return npb.Result{}, err
	}
	// A first ranking, which is not timed, touches all memory and opens all channels.
	if err := s.rank(1); err != nil {
		return npb.Result{}, err
	}
	wrong, err := s.rankAll()
	if err != nil {
		return npb.Result{}, err
	}
	return npb.Result{
		Fields: []npb.Field{
			npb.Fieldf("Size", "%d keys (2^%d), each less than 2^%d", class.total(), class.keysLog, class.maxLog),
			npb.Fieldf("Iterations", "%d", rankings),
			npb.Fieldf("Misplaced", "%d", wrong),
		},
		Operations: rankings * float64(class.total()), // number of ranked keys
		Verified:   wrong == 0,
	}, nil
}

// rankAll runs the timed part. At rank 0 it returns the total number of misplaced keys at all ranks.
func (s *sorter) rankAll() (int, error) {
	if err := s.run.Start(); err != nil {
		return 0, err
	}
	wrong := 0
	for i := 1; i <= rankings; i++ {
		if err := s.rank(i); err != nil {
			return 0, err
		}
		wrong += s.checkTests(i)
	}
	if err := s.run.Stop(); err != nil {
		return 0, err
	}
	unsorted, err := s.checkSorted()
	if err != nil {
		return 0, err
	}
	all := []int{wrong + unsorted}
	err = mpj.Reduce(s.comm, all, all, mpj.Sum, 0)
	return all[0], err
}
