package mpj_test

import (
	"context"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Two ranks exchange a message. A separate program calls mpj.Init instead of RunLocal, and p2prun
// starts the ranks.
func Example() {
	err := mpj.RunLocal(context.Background(), 2, func(world *mpj.World) error {
		comm := world.Comm
		if comm.Rank() == 0 {
			return mpj.Send(comm, []float64{3, 4}, 1, 0)
		}
		buf := make([]float64, 10)
		status, err := mpj.Recv(comm, buf, 0, mpj.AnyTag)
		if err != nil {
			return err
		}
		fmt.Println("rank 1 received", buf[:mpj.Count[float64](status)])
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: rank 1 received [3 4]
}

// Every rank contributes to a sum and receives the result.
func ExampleAllreduce() {
	mpj.RunLocal(context.Background(), 4, func(world *mpj.World) error {
		sum := make([]int, 1)
		if err := mpj.Allreduce(world.Comm, []int{world.Rank()}, sum, mpj.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("0+1+2+3 =", sum[0])
		}
		return nil
	})
	// Output: 0+1+2+3 = 6
}

// Every rank has a range of numbers. The operation combines ranges, each of which is one item that
// reductions never split.
func ExampleOpOf() {
	type span struct{ Min, Max float64 }
	spans := mpj.TypeStructOf[span]()
	union := mpj.OpOf(func(in, inout []span) {
		for i, s := range in {
			inout[i] = span{min(s.Min, inout[i].Min), max(s.Max, inout[i].Max)}
		}
	})
	mpj.RunLocal(context.Background(), 4, func(world *mpj.World) error {
		middle := float64(10 * world.Rank())
		mine, all := []span{{middle - 1, middle + 1}}, make([]span, 1)
		if err := mpj.AllreduceTyped(world.Comm, spans.At(mine, 0, 1), spans.At(all, 0, 1), union); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(all[0])
		}
		return nil
	})
	// Output: {-1 31}
}
