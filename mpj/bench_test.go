package mpj

import (
	"context"
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// BenchmarkPingPong measures the time of a message and its reply. In the cases with healing,
// processes keep the messages for replicas that might join, up to a limit.
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

// BenchmarkAllreduce measures the time of one Allreduce of 8 bytes and one of 1 MiB.
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

// BenchmarkReplay measures the time that a new replica takes to catch up with its rank after the
// rank has received the given number of messages.
func BenchmarkReplay(b *testing.B) {
	for _, c := range []struct{ messages, size int }{{100_000, 64}, {10_000, 10 << 10}, {500, 1 << 20}} {
		b.Run(fmt.Sprintf("%dx%dB", c.messages, c.size), func(b *testing.B) {
			b.SetBytes(int64(c.messages * c.size))
			for range b.N {
				b.StopTimer()
				job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2, Sockets: true, Heal: b.TempDir()})
				if err := runIn(job, func(w *World) error { return replayed(b, job, w, c.messages, make([]byte, c.size)) }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// replayed is a program in which rank 1 receives messages, and then another replica joins rank 1.
func replayed(b *testing.B, job *localworld.World, w *World, messages int, buf []byte) error {
	for range messages {
		if w.Rank() == 0 {
			if err := Send(w.Comm, buf, 1, 0); err != nil {
				return err
			}
		} else if _, err := Recv(w.Comm, buf, 0, 0); err != nil {
			return err
		}
	}
	if err := Barrier(w.Comm); err != nil || w.Rank() == 0 || w.Replica() != 0 {
		return err
	}
	joined := make(chan struct{})
	b.StartTimer()
	if _, err := job.Join(1, func(uint64, uint64) { close(joined) }); err != nil {
		return err
	}
	<-joined
	b.StopTimer()
	return nil
}
