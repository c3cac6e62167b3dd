// Traffic sends messages of random lengths between random ranks, and checks every byte. At
// intervals each rank prints the checksum of all payloads that it has received.
//
//	traffic [-rounds K] [-every J] [-seed S] [-most BYTES] [-pause D]
//
// The package e2e/internal/traffic defines the messages and the expected output.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/traffic"
	"github.com/p2pmpi/p2pmpi/mpj"
)

var (
	rounds = flag.Int("rounds", 100, "number of rounds")
	every  = flag.Int("every", 10, "print a line at each rank after every `J` rounds")
	seed   = flag.Uint64("seed", 1, "`SEED` of all random choices")
	most   = flag.Int("most", 1<<16, "bytes of the longest message")
	pause  = flag.Duration("pause", 0, "idle time in each round")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

func run() error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	var sum uint64
	for round := range *rounds {
		if sum, err = exchange(world.Comm, traffic.Round(*seed, round, world.Size(), *most), sum); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if (round+1)%*every == 0 {
			fmt.Println(traffic.Line(world.Rank(), round+1, sum))
		}
		time.Sleep(*pause)
	}
	return world.Finalize()
}

// exchange sends and receives this rank's part of a round, all at once. It returns the checksum
// after adding the received payloads. A message that is too long for its buffer is an error of
// Waitall.
func exchange(c *mpj.Comm, messages []traffic.Message, sum uint64) (uint64, error) {
	var requests []*mpj.Request
	var wanted, got [][]byte
	for _, m := range messages {
		if m.To != c.Rank() {
			continue
		}
		payload := m.Payload()
		buf := make([]byte, len(payload))
		r, err := mpj.Irecv(c, buf, m.From, m.Tag)
		if err != nil {
			return sum, err
		}
		requests, wanted, got = append(requests, r), append(wanted, payload), append(got, buf)
	}
	for _, m := range messages {
		if m.From != c.Rank() {
			continue
		}
		r, err := mpj.Isend(c, m.Payload(), m.To, m.Tag)
		if err != nil {
			return sum, err
		}
		requests = append(requests, r)
	}
	if _, err := mpj.Waitall(requests...); err != nil {
		return sum, err
	}
	for i, payload := range got {
		if !bytes.Equal(payload, wanted[i]) {
			return sum, fmt.Errorf("message %d to rank %d is damaged", i, c.Rank())
		}
		sum = traffic.Mix(sum, payload)
	}
	return sum, nil
}
