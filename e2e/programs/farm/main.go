// Farm is a target for fault injection in which everything depends on the order of arrival. Rank 0
// gives a new task to each worker that answers. Each answer is a hash of everything that its worker
// has received. Rank 0 computes the same hash (package farm of e2e/internal), so it detects at once
// when two replicas saw different orders. At intervals all ranks print the hash of the order, and
// rank 0 also prints the order, which determines the whole output.
//
//	farm [-tasks K] [-every J] [-style recv|probe|iprobe|test|waitany|mixed] [-size N] [-work D]
//
// The output of two runs differs, but within one run the same number of tasks has the same hash at
// all ranks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/farm"
	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	tasks = flag.Int("tasks", 1000, "number of tasks")
	every = flag.Int("every", 100, "print a line at each rank after every `J` tasks")
	style = flag.String("style", "mixed", "how rank 0 receives: recv, probe, iprobe, test, waitany or mixed")
	size  = flag.Int("size", 2, "numbers in each message, at least 2")
	work  = flag.Duration("work", time.Millisecond, "busy time in each task")
)

// The tags.
const (
	taskTag = 1 + iota
	answerTag
	orderTag // the hash of the order so far
	doneTag  // the hash of the complete order
)

func main() {
	flag.Parse()
	world, err := mpj.Init(context.Background())
	if err == nil && world.Rank() == 0 {
		err = newMaster(world.Comm).run()
	} else if err == nil {
		err = worker(world.Comm)
	}
	if err == nil {
		err = world.Finalize()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "farm:", err)
		os.Exit(1)
	}
}

// worker answers tasks until all are done.
func worker(c *mpj.Comm) error {
	var state uint64
	buf := make([]uint64, *size)
	for {
		s, err := mpj.Recv(c, buf, 0, mpj.AnyTag)
		if err != nil {
			return err
		}
		state = farm.Mix(state, buf[0])
		if s.Tag == taskTag {
			if !intact(buf) {
				return fmt.Errorf("rank %d got a damaged task", c.Rank())
			}
			spin(*work)
			fill(buf, state)
			if err := mpj.Send(c, buf, 0, answerTag); err != nil {
				return err
			}
			continue
		}
		fmt.Println(farm.Line(c.Rank(), int(buf[1]), buf[0]))
		if s.Tag == doneTag {
			return nil
		}
	}
}

// fill fills a message with numbers that all follow from the first.
func fill(buf []uint64, x uint64) {
	for i := range buf {
		buf[i] = x + uint64(i)*uint64(i)
	}
}

func intact(buf []uint64) bool {
	for i := range buf {
		if buf[i] != buf[0]+uint64(i)*uint64(i) {
			return false
		}
	}
	return true
}

// spin computes for d without calling mpj, as a real program does.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}
