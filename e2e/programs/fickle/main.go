// Fickle is a program that breaks the promise to be repeatable: half-way, rank 0
// passes something around the ring that is not the same at all its replicas.
//
//	fickle [-steps K] none|clock|environment|corrupt=REPLICA
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var steps = flag.Int("steps", 40, "how many steps")

func main() {
	flag.Parse()
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "fickle:", err)
		os.Exit(1)
	}
}

func run(how string) error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	value := make([]byte, 64)
	for step := range *steps {
		copy(value, fmt.Sprintf("%064d", step))
		if world.Rank() == 0 && step == *steps/2 {
			if err := spoil(value, how, world.Replica()); err != nil {
				return err
			}
		}
		if err := pass(world.Comm, value); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		// Replicas that run on get a chance to hear of it.
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Printf("rank %d done\n", world.Rank())
	return world.Finalize()
}

// spoil writes into value what differs from replica to replica.
func spoil(value []byte, how string, replica int) error {
	how, which, _ := strings.Cut(how, "=")
	switch how {
	case "none":
	case "clock":
		copy(value, time.Now().Format(time.RFC3339Nano))
	case "environment":
		folder, err := os.Getwd() // a process has one of its own
		if err != nil {
			return err
		}
		copy(value, folder[max(0, len(folder)-len(value)):])
	case "corrupt":
		if k, err := strconv.Atoi(which); err != nil {
			return err
		} else if k == replica {
			value[5] ^= 1
		}
	default:
		return fmt.Errorf("unknown way %q", how)
	}
	return nil
}

// pass sends value from rank 0 around the ring and back.
func pass(c *mpj.Comm, value []byte) error {
	next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	if c.Rank() == 0 {
		if err := mpj.Send(c, value, next, 0); err != nil {
			return err
		}
	}
	if _, err := mpj.Recv(c, value, before, 0); err != nil || c.Rank() == 0 {
		return err
	}
	return mpj.Send(c, value, next, 0)
}
