// Beat measures gaps in the messages of a rank. Every rank sends to rank 0 at a steady pace, and
// rank 0 prints each silence that is longer than four beats.
//
//	beat [-for D] [-every D]
//
//	gap RANK LAST NEXT     the times of two arrivals, in nanoseconds since 1970
//
// It reads the clock of its machine, which may differ between replicas, but never sends the
// readings. Its output differs between replicas, so with replicas it needs --on-divergence warn.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	length = flag.Duration("for", 5*time.Second, "duration of the run if no message is late")
	every  = flag.Duration("every", 2*time.Millisecond, "interval between two messages of a rank")
)

const tag = 1

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "beat:", err)
		os.Exit(1)
	}
}

func run() error {
	if *every <= 0 || *length < *every {
		return errors.New("want at least one beat and a positive interval")
	}
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	beats := int(*length / *every)
	if world.Rank() == 0 {
		err = listen(world.Comm, beats)
	} else {
		err = send(world.Comm, beats)
	}
	if err != nil {
		return err
	}
	return world.Finalize()
}

// send sends the beats on schedule. It makes up for late beats, so that no replica stays behind
// another.
func send(c *mpj.Comm, beats int) error {
	begun := time.Now()
	for i := range beats {
		if err := mpj.Send(c, []int64{int64(i)}, 0, tag); err != nil {
			return err
		}
		time.Sleep(time.Until(begun.Add(time.Duration(i+1) * *every)))
	}
	return nil
}

// listen receives the beats of the other ranks in order of arrival.
func listen(c *mpj.Comm, beats int) error {
	last, count := make([]time.Time, c.Size()), make([]int64, c.Size())
	var beat [1]int64
	for range beats * (c.Size() - 1) {
		s, err := mpj.Recv(c, beat[:], mpj.AnySource, tag)
		if err != nil {
			return err
		}
		now := time.Now()
		if beat[0] != count[s.Source] {
			return fmt.Errorf("beat %d of rank %d, want %d", beat[0], s.Source, count[s.Source])
		}
		if count[s.Source] > 0 && now.Sub(last[s.Source]) > 4**every {
			fmt.Println("gap", s.Source, last[s.Source].UnixNano(), now.UnixNano())
		}
		last[s.Source] = now
		count[s.Source]++
	}
	return nil
}
