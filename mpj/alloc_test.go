//go:build !race

package mpj

import (
	"context"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// TestSmallMessagesDoNotAllocate checks that a small message through shared memory, between ranks
// that have already communicated, allocates no heap memory. It covers slices and datatypes with
// gaps. The test does not run under the race detector, which allocates.
func TestSmallMessagesDoNotAllocate(t *testing.T) {
	column := TypeOf[float64]().Vector(4, 1, 4)
	row, matrix := make([]float64, 4), make([]float64, 16)
	calls := []struct {
		name string
		send func(c *Comm, other int) error
		recv func(c *Comm, buf []float64, other int) error
	}{
		{"Send", func(c *Comm, other int) error { return Send(c, row, other, 0) }, func(c *Comm, buf []float64, other int) error {
			_, err := Recv(c, buf, other, 0)
			return err
		}},
		{"SendTyped", func(c *Comm, other int) error { return SendTyped(c, column.At(matrix, 0, 1), other, 0) }, func(c *Comm, buf []float64, other int) error {
			_, err := RecvTyped(c, column.At(buf, 1, 1), other, 0)
			return err
		}},
		{"Sendrecv", func(*Comm, int) error { return nil }, func(c *Comm, buf []float64, other int) error {
			_, err := Sendrecv(c, row, other, 0, buf, other, 0)
			return err
		}},
	}
	job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 1, Rings: true})
	err := runIn(job, func(w *World) error {
		other, buf := 1-w.Rank(), make([]float64, 16)
		for _, call := range calls {
			var failed error
			round := func() {
				if w.Rank() == 0 && failed == nil {
					failed = call.send(w.Comm, other)
				}
				if failed == nil {
					failed = call.recv(w.Comm, buf, other)
				}
				if w.Rank() == 1 && failed == nil {
					failed = call.send(w.Comm, other)
				}
			}
			for range 100 { // let pools and queues reach their final sizes
				round()
			}
			// The count covers the allocations of both ranks.
			n := testing.AllocsPerRun(500, round)
			if failed != nil {
				return failed
			}
			if w.Rank() == 0 && n > 0 {
				t.Errorf("%s and its reply: %v allocations", call.name, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
