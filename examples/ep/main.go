package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	errUsage        = errors.New("usage: ep [S|W|A|B]")
	errVerification = errors.New("the sums are not those of NPB")
)

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, errUsage) {
		world.Abort(2, err.Error()) // the whole job, with one message
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ep:", err)
		os.Exit(1) // this process: its replicas go on, if they can
	}
}

func run(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	class, err := classOf(args)
	if err != nil {
		return err
	}
	if world.Rank() != 0 {
		stderr = io.Discard
	}
	if err := mpj.Barrier(world.Comm); err != nil {
		return err
	}
	start := world.Wtime()
	total, counts, err := compute(world.Comm, class, stderr)
	if err != nil || world.Rank() != 0 {
		return err
	}
	r := result{class, world.Size(), total, counts, world.Wtime() - start}
	if err := r.print(stdout); err != nil {
		return err
	}
	if !class.verify(total) {
		return errVerification
	}
	return nil
}

// compute divides the batches among the ranks and returns the totals at rank 0.
func compute(c *mpj.Comm, class class, progress io.Writer) (total sums, counts annuli, err error) {
	batches := class.batches()
	from, to := share(batches, c.Rank(), c.Size())
	mine := make([]float64, 0, 2*(to-from))
	for k := from; k < to; k++ {
		s := batch(k, &counts)
		mine = append(mine, s.x, s.y)
		if done, all := k+1-from, to-from; done*10/all > (done-1)*10/all {
			fmt.Fprintf(progress, "ep: %d %% done\n", done*100/all)
		}
	}
	all, err := gather(c, mine, batches)
	if err != nil {
		return total, counts, err
	}
	// Sums of floating-point numbers depend on the order. This one is that of
	// the batches, whoever computed them.
	for i := 0; i < len(all); i += 2 {
		total.x += all[i]
		total.y += all[i+1]
	}
	return total, counts, mpj.Reduce(c, counts[:], counts[:], mpj.Sum, 0)
}

// share returns which of the batches are for a rank: from up to, not
// including, to.
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
