// Fickle is a program that is not repeatable, although replication requires that. At some step, rank 0 sends a
// value around the ring that differs between its replicas.
//
//	fickle [-steps K] [-at STEP] none|clock|environment|corrupt=REPLICA|last|self|print|write
//
// With the last four, the difference is at the end. Replica 1 omits a last message, sends itself a
// different one, or prints something else, a second after the others. The printed text is also
// written to out.txt; with write, only that file differs.
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

var (
	steps = flag.Int("steps", 40, "number of steps")
	odd   = flag.Int("at", 0, "`STEP` at which the value differs")
)

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
		if world.Rank() == 0 && step == *odd {
			if err := spoil(value, how, world.Replica()); err != nil {
				return err
			}
		}
		if err := pass(world.Comm, value); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		// Give replicas that continue a chance to learn of the divergence.
		time.Sleep(20 * time.Millisecond)
	}
	last := ""
	if world.Rank() == 0 && world.Replica() == 1 {
		last = how
	}
	if err := part(world, how, last); err != nil {
		return err
	}
	text := fmt.Sprintf("rank %d done", world.Rank())
	printed, written := text, text
	if last == "print" {
		printed += " twice"
	}
	if last == "print" || last == "write" {
		written += " twice"
	}
	fmt.Println(printed)
	if err := os.WriteFile("out.txt", []byte(written+"\n"), 0o600); err != nil {
		return err
	}
	return world.Finalize()
}

// part runs the end of the program, in which the odd replica may differ.
func part(world *mpj.World, how, last string) error {
	c, value := world.Comm, []byte(last)
	if how == "self" {
		r, err := mpj.Irecv(c, make([]byte, len(how)), c.Rank(), 1)
		if err != nil {
			return err
		}
		if err := mpj.Send(c, value, c.Rank(), 1); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
	}
	if how == "last" && last == "" {
		if c.Rank() == 0 {
			return mpj.Send(c, value, 1, 1)
		}
		if _, err := mpj.Recv(c, make([]byte, len(how)), 0, 1); err != nil {
			return err
		}
	}
	if last == "print" {
		time.Sleep(time.Second) // another replica ends first, and becomes the output leader of the rank
	}
	if c.Rank() == 1 && (how == "last" || how == "self" || how == "print" || how == "write") {
		time.Sleep(3 * time.Second) // both replicas of rank 0 end before the job does
	}
	return nil
}

// spoil stores data in value that differs between replicas.
func spoil(value []byte, how string, replica int) error {
	how, which, _ := strings.Cut(how, "=")
	switch how {
	case "none", "last", "self", "print", "write":
	case "clock":
		copy(value, time.Now().Format(time.RFC3339Nano))
	case "environment":
		folder, err := os.Getwd() // each process has its own
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
		return fmt.Errorf("unknown difference %q", how)
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
