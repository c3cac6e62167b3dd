// Conformance runs the conformance suite as the processes of a job. Rank 0 prints the name of each
// test that has passed.
//
//	conformance [-replicated] [-rounds K]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/mpj/mpitest"
)

var (
	replicated = flag.Bool("replicated", false, "run only the tests for ranks with several replicas")
	rounds     = flag.Int("rounds", 1, "run the suite `K` times")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run() error {
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	count := 0
	for round := range *rounds {
		err := mpitest.Run(world, *replicated, mpitest.Suite(), func(name string) {
			if count++; world.Rank() == 0 {
				fmt.Printf("round %d passed: %s\n", round, name)
			}
		})
		if err != nil {
			return err
		}
	}
	if world.Rank() == 0 {
		fmt.Println("tests passed:", count)
	}
	return world.Finalize()
}
