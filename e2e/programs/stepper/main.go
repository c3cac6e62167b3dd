// Stepper is a target for fault injection whose every answer is known. In each step it exchanges a
// number around the ring. Then rank 0 receives one number from each other rank in any order
// (wildcard receives). Each rank prints one line at intervals.
//
//	stepper [-steps K | -for D] [-every J] [-work D] [-pause D [-pacer]] [-save J [-state MiB]]
//		[-exit S] [-abort S] [-panic] [-stuck] [-write FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	steps  = flag.Int("steps", 100, "number of steps")
	last   = flag.Duration("for", 0, "run the steps that rank 0 begins within this `DURATION`")
	every  = flag.Int("every", 10, "print a line after every `J` steps")
	work   = flag.Duration("work", 5*time.Millisecond, "busy time in each step")
	pause  = flag.Duration("pause", 0, "idle time in each step")
	pacer  = flag.Bool("pacer", false, "only rank 0 has idle time; the others wait for its messages")
	exit   = flag.Int("exit", 0, "rank 0 exits with this status half-way")
	abort  = flag.Int("abort", 0, "rank 0 aborts with this status half-way")
	panics = flag.Bool("panic", false, "rank 0 panics half-way")
	stuck  = flag.Bool("stuck", false, "rank 0 waits half-way for a message that no rank sends")
	save   = flag.Int("save", 0, "make a checkpoint after every `J` steps")
	size   = flag.Int("state", 0, "size of each rank's additional state, in MiB")
	write  = flag.String("write", "", "every rank writes a file of this name")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stepper:", err)
		os.Exit(1)
	}
}

func run() error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	s := newState(*size << 20)
	began := world.Wtime()
	for ; ; s.step++ {
		if *save > 0 && s.step%int64(*save) == 0 {
			if err := world.Checkpoint(s.save, s.restore); err != nil {
				return fmt.Errorf("step %d: %w", s.step, err)
			}
		}
		step := int(s.step)
		more, err := hasNextStep(world, step, began)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if !more {
			break
		}
		if world.Rank() == 0 && step == *steps/2 {
			if err := misbehave(world); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		got, err := ring(world.Comm, int64(step))
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		all, err := gatherAnyOrder(world.Comm, got)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		s.add(all)
		if (step+1)%*every == 0 {
			fmt.Printf("rank %d step %d sum %d\n", world.Rank(), step+1, s.sum)
		}
		spin(*work)
		if world.Rank() == 0 || !*pacer {
			time.Sleep(*pause)
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	if *write != "" {
		if err := os.WriteFile(*write, fmt.Appendf(nil, "rank %d sum %d\n", world.Rank(), s.sum), 0o644); err != nil {
			return err
		}
	}
	return world.Finalize()
}

// hasNextStep reports whether there is another step; the result is the same at all ranks.
func hasNextStep(world *mpj.World, step int, began float64) (bool, error) {
	if *last == 0 {
		return step < *steps, nil
	}
	more := []int64{0}
	if world.Rank() == 0 && world.Wtime()-began < last.Seconds() {
		more[0] = 1
	}
	err := mpj.Bcast(world.Comm, more, 0)
	return more[0] == 1, err
}

func misbehave(world *mpj.World) error {
	switch {
	case *exit != 0:
		fmt.Fprintln(os.Stderr, "stepper gives up")
		os.Exit(*exit)
	case *abort != 0:
		fmt.Println("rank 0 gives up")
		world.Abort(*abort, "stepper aborts")
	case *panics:
		panic("stepper panics")
	case *stuck:
		_, err := mpj.Recv(world.Comm, []int64{0}, 1, 9)
		return err
	}
	return nil
}

// ring sends x to the next rank and returns the number from the previous one.
func ring(c *mpj.Comm, x int64) (int64, error) {
	n, me := c.Size(), c.Rank()
	out, in := []int64{x*int64(n) + int64(me)}, []int64{0}
	if err := mpj.Send(c, out, (me+1)%n, 1); err != nil {
		return 0, err
	}
	_, err := mpj.Recv(c, in, (me+n-1)%n, 1)
	return in[0], err
}

// gatherAnyOrder sums x over all ranks at rank 0, in the order of arrival, and returns the result
// at every rank.
func gatherAnyOrder(c *mpj.Comm, x int64) (int64, error) {
	result := []int64{x}
	if c.Rank() != 0 {
		if err := mpj.Send(c, result, 0, 2); err != nil {
			return 0, err
		}
	} else {
		for range c.Size() - 1 {
			in := []int64{0}
			if _, err := mpj.Recv(c, in, mpj.AnySource, 2); err != nil {
				return 0, err
			}
			result[0] += in[0]
		}
	}
	return result[0], mpj.Bcast(c, result, 0)
}

// spin computes for d without calling mpj, as a real program does.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}
