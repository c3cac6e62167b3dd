package mpj

import (
	"context"
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// BenchmarkPingPong takes the time of a message there and one back. In those that
// heal, processes keep the messages for replicas that might join, as long as
// they are not too many.
func BenchmarkPingPong(b *testing.B) {
	configs := map[string]localworld.Config{
		"self":       {Ranks: 2, Replicas: 1},
		"rings":      {Ranks: 2, Replicas: 1, Rings: true},
		"rings,r=2":  {Ranks: 2, Replicas: 2, Rings: true},
		"stream":     {Ranks: 2, Replicas: 1, Sockets: true},
		"stream,r=2": {Ranks: 2, Replicas: 2, Sockets: true},

		"rings,r=2,heal":  {Ranks: 2, Replicas: 2, Rings: true, Heal: b.TempDir()},
		"stream,r=2,heal": {Ranks: 2, Replicas: 2, Sockets: true, Heal: b.TempDir()},
	}
	for name, config := range configs {
		for _, size := range []int{1, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dB", name, size), func(b *testing.B) {
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				err := runIn(localworld.New(context.Background(), config), func(w *World) error {
					return pingPong(w.Comm, make([]byte, size), b.N)
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
	}
}

func pingPong(c *Comm, buf []byte, rounds int) error {
	other := 1 - c.Rank()
	for range rounds {
		if c.Rank() == 0 {
			if err := Send(c, buf, other, 0); err != nil {
				return err
			}
		}
		if _, err := Recv(c, buf, other, 0); err != nil {
			return err
		}
		if c.Rank() == 1 {
			if err := Send(c, buf, other, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// BenchmarkAllreduce takes the time of one of 8 bytes and one of 1 MiB.
func BenchmarkAllreduce(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, count := range []int{1, 1 << 17} {
			b.Run(fmt.Sprintf("n=%d/%dB", n, 8*count), func(b *testing.B) {
				b.ReportAllocs()
				err := RunLocal(context.Background(), n, func(w *World) error {
					send, recv := make([]float64, count), make([]float64, count)
					for range b.N {
						if err := Allreduce(w.Comm, send, recv, Sum); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
	}
}
