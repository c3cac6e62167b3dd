package main

import (
	"fmt"
	"io"
	"math"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

var kernel = npb.Kernel{Name: "ep", Classes: []string{"S", "W", "A", "B"}, Sequential: true, Run: run}

func main() { kernel.Main() }

func run(r *npb.Run) (npb.Result, error) {
	class := classes[r.Class]
	if err := r.Start(); err != nil {
		return npb.Result{}, err
	}
	total, counts, err := compute(r, class.batches())
	if err != nil {
		return npb.Result{}, err
	}
	if err := r.Stop(); err != nil {
		return npb.Result{}, err
	}
	return npb.Result{
		Fields:     fields(class, total, counts),
		Operations: math.Ldexp(1, class.bits+1), // uniform random numbers
		Verified:   class.verify(total),
	}, nil
}

// compute divides the batches among the ranks and returns the totals at rank 0.
func compute(r *npb.Run, batches int) (total sums, counts annuli, err error) {
	from, to := share(batches, r.Rank(), r.Size())
	mine := make([]float64, 0, 2*(to-from))
	for k := from; k < to; k++ {
		s := batch(k, &counts)
		mine = append(mine, s.x, s.y)
		progress(r.Progress, k+1-from, to-from)
	}
	all := mine
	if r.World != nil {
		err = r.Communicate(func() error {
			all, err = gather(r.World.Comm, mine, batches)
			if err != nil {
				return err
			}
			return mpj.Reduce(r.World.Comm, counts[:], counts[:], mpj.Sum, 0)
		})
	}
	// Sums of floating-point numbers depend on the order of additions. So the sums of batches are
	// added in the order of the batches, whatever rank has computed them.
	for i := 0; i+1 < len(all); i += 2 {
		total.x += all[i]
		total.y += all[i+1]
	}
	return total, counts, err
}

// progress reports every tenth of the work.
func progress(w io.Writer, done, all int) {
	if done*10/all > (done-1)*10/all {
		fmt.Fprintf(w, "ep: %d %% done\n", done*100/all)
	}
}

// share returns the range of batches of a rank: from is included, and to is not.
func share(batches, rank, ranks int) (from, to int) {
	return batches * rank / ranks, batches * (rank + 1) / ranks
}

// gather returns at rank 0 the sums of all batches in order, two numbers each.
func gather(c *mpj.Comm, mine []float64, batches int) ([]float64, error) {
	if c.Rank() != 0 {
		return nil, mpj.Gatherv(c, mine, nil, nil, nil, 0)
	}
	counts := make([]int, c.Size())
	for rank := range counts {
		from, to := share(batches, rank, c.Size())
		counts[rank] = 2 * (to - from)
	}
	all := make([]float64, 2*batches)
	return all, mpj.Gatherv(c, mine, all, counts, nil, 0)
}
