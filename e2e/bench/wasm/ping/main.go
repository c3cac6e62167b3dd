// Ping sends a message of 8 bytes back and forth between two ranks, and prints half of the
// round-trip time, as the median of some batches. Without an argument it does nothing, and joins no
// job.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/p2pmpi/p2pmpi/mpj"
)

func main() {
	if len(os.Args) < 2 {
		return
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "ping:", err)
		os.Exit(1)
	}
}

func run(count string) error {
	trips, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	seconds := make([]float64, 11)
	for i := range seconds {
		if seconds[i], err = batch(world, trips); err != nil {
			return err
		}
	}
	slices.Sort(seconds)
	if world.Rank() == 0 {
		fmt.Printf("kernel=ping seconds=%.9f verified=yes\n", seconds[len(seconds)/2]/float64(2*trips))
	}
	return world.Finalize()
}

// batch returns the time of a number of round trips.
func batch(world *mpj.World, trips int) (float64, error) {
	const tag = 1
	buf, other := make([]byte, 8), 1-world.Rank()
	start := world.Wtime()
	for range trips {
		if world.Rank() == 0 {
			if err := mpj.Send(world.Comm, buf, other, tag); err != nil {
				return 0, err
			}
		}
		if _, err := mpj.Recv(world.Comm, buf, other, tag); err != nil {
			return 0, err
		}
		if world.Rank() != 0 {
			if err := mpj.Send(world.Comm, buf, other, tag); err != nil {
				return 0, err
			}
		}
	}
	return world.Wtime() - start, nil
}
