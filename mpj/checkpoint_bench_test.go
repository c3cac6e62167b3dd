package mpj

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// BenchmarkCheckpoint measures the delay of the program by a checkpoint, with one rank of two
// replicas that each write their state into a file.
func BenchmarkCheckpoint(b *testing.B) {
	for _, mib := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%d MiB", mib), func(b *testing.B) {
			state := make([]byte, mib<<20)
			b.SetBytes(int64(len(state)))
			job := localworld.New(context.Background(), localworld.Config{Ranks: 1, Replicas: 2, Heal: b.TempDir()})
			err := runIn(job, func(w *World) error {
				for range b.N {
					if err := w.Checkpoint(func(to io.Writer) error {
						_, err := to.Write(state)
						return err
					}, noRestore); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
