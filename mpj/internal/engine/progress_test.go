package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// configs returns jobs with all kinds of channels.
func configs(ranks int) map[string]localworld.Config {
	return map[string]localworld.Config{
		"self":        {Ranks: ranks, Replicas: 1},
		"rings":       {Ranks: ranks, Replicas: 1, Rings: true},
		"rings, read": {Ranks: ranks, Replicas: 1, Rings: true, Reading: channel.ReadAny},
		"sockets":     {Ranks: ranks, Replicas: 1, Sockets: true},
		"self,r=2":    {Ranks: ranks, Replicas: 2},
		"rings,r=2":   {Ranks: ranks, Replicas: 2, Rings: true},
		"sockets,r=2": {Ranks: ranks, Replicas: 2, Sockets: true},
	}
}

// everyWay runs program as every process of a job, with every kind of channel. It flushes the
// messages of program before the process finishes.
func everyWay(t *testing.T, ranks int, program func(*localworld.World, view.Process, *engine.Engine) error) {
	for name, config := range configs(ranks) {
		t.Run(name, func(t *testing.T) {
			job := localworld.New(context.Background(), config)
			err := job.Run(func(p view.Process, e *engine.Engine) error {
				if err := program(job, p, e); err != nil {
					return err
				}
				if err := e.Flush(); err != nil {
					return err
				}
				job.Finish(p)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProgressWithoutTheProgram checks that a transfer continues while the program of either side
// does not call the engine.
func TestProgressWithoutTheProgram(t *testing.T) {
	const size = 8 << 20
	for _, idle := range []int{0, 1} {
		t.Run(fmt.Sprintf("rank %d computes", idle), func(t *testing.T) {
			for name, config := range configs(2) {
				t.Run(name, func(t *testing.T) {
					job := localworld.New(context.Background(), config)
					over := make(chan struct{}, config.Replicas)
					err := job.Run(func(p view.Process, e *engine.Engine) error {
						r, err := startTransfer(p, e, make([]byte, size))
						if err != nil {
							return err
						}
						if p.Rank == idle {
							<-over // each replica of the other rank sends to this channel
						}
						if _, err := e.Wait(r); err != nil {
							return err
						}
						if p.Rank != idle {
							over <- struct{}{}
						}
						if err := e.Flush(); err != nil {
							return err
						}
						job.Finish(p)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

func startTransfer(p view.Process, e *engine.Engine, buf []byte) (*engine.Request, error) {
	if p.Rank == 0 {
		return e.Isend(context2, 1, 0, buf, engine.Standard)
	}
	return e.Irecv(context2, 0, 0, buf)
}

// TestSynchronousSend checks that a synchronous send ends when its message has been matched, and not
// earlier.
func TestSynchronousSend(t *testing.T) {
	everyWay(t, 2, func(_ *localworld.World, p view.Process, e *engine.Engine) error {
		for round := range 20 {
			if p.Rank == 1 {
				if _, err := e.Recv(context2, 0, 1, nil); err != nil {
					return err
				}
				if _, err := e.Recv(context2, 0, 0, make([]byte, 100)); err != nil {
					return err
				}
				continue
			}
			r, err := e.Isend(context2, 1, 0, make([]byte, round), engine.Synchronous)
			if err != nil {
				return err
			}
			if done, err := e.Testall([]*engine.Request{r}); err != nil || done {
				return fmt.Errorf("done %v before any receive: %w", done, err)
			}
			if err := e.Send(context2, 1, 1, nil, engine.Standard); err != nil {
				return err
			}
			if _, err := e.Wait(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestR2SynchronousSendsSurviveKills checks two ranks that send synchronously to each other, with
// receives posted. They must continue, whichever replica fails.
func TestR2SynchronousSendsSurviveKills(t *testing.T) {
	for _, victim := range []view.Process{{}, {Replica: 1}, {Rank: 1}, {Rank: 1, Replica: 1}} {
		for _, at := range []int{0, 7, 19} {
			job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2, Sockets: at == 7})
			err := job.Run(func(p view.Process, e *engine.Engine) error {
				for round := range 30 {
					if p == victim && round == at {
						job.Kill(p)
					}
					r, err := e.Irecv(context2, 1-p.Rank, 0, make([]byte, 1))
					if err != nil {
						return err
					}
					if err := e.Send(context2, 1-p.Rank, 0, []byte{byte(round)}, engine.Synchronous); err != nil {
						return err
					}
					if _, err := e.Wait(r); err != nil {
						return err
					}
				}
				if err := e.Flush(); err != nil {
					return err
				}
				job.Finish(p)
				return nil
			})
			if err != nil {
				t.Errorf("%v killed in round %d: %v", victim, at, err)
			}
		}
	}
}

// TestMatchedProbe checks that a message that a matched probe has taken is received once, by Mrecv
// or Imrecv.
func TestMatchedProbe(t *testing.T) {
	everyWay(t, 2, func(_ *localworld.World, p view.Process, e *engine.Engine) error {
		sizes := []int{3, 200_000, 0}
		if p.Rank == 0 {
			var rs []*engine.Request
			for i, n := range sizes {
				r, err := e.Isend(context2, 1, int32(i), make([]byte, n), engine.Standard)
				if err != nil {
					return err
				}
				rs = append(rs, r)
			}
			for _, r := range rs {
				if _, err := e.Wait(r); err != nil {
					return err
				}
			}
			return nil
		}
		first, s, err := e.Mprobe(context2, engine.AnySource, engine.AnyTag)
		if err != nil || s.Size != sizes[0] || s.Tag != 0 {
			return fmt.Errorf("first: %+v, %w", s, err)
		}
		var second *engine.Matched
		for ok := false; !ok; {
			if second, s, ok, err = e.Improbe(context2, 0, 1); err != nil {
				return err
			}
		}
		if s, err := e.Recv(context2, 0, engine.AnyTag, nil); err != nil || s.Tag != 2 {
			return fmt.Errorf("third: %+v, %w", s, err)
		}
		for i, m := range []*engine.Matched{second, first} {
			if s, err := e.Mrecv(m, make([]byte, sizes[1-i])); err != nil || s.Size != sizes[1-i] {
				return fmt.Errorf("the matched message %d was received with %+v, %w", 1-i, s, err)
			}
		}
		return nil
	})
}

// TestCancel checks that a receive can be cancelled until it has matched a message.
func TestCancel(t *testing.T) {
	everyWay(t, 2, func(_ *localworld.World, p view.Process, e *engine.Engine) error {
		if p.Rank == 0 {
			return e.Send(context2, 1, 5, []byte{1}, engine.Standard)
		}
		never, err := e.Irecv(context2, 0, 4, nil)
		if err != nil {
			return err
		}
		taken, err := e.Irecv(context2, 0, 5, make([]byte, 1))
		if err != nil {
			return err
		}
		if _, err := e.Wait(taken); err != nil {
			return err
		}
		err = e.Cancel(never)
		if errors.Is(err, engine.ErrReplicated) {
			return nil // the error is expected
		}
		if s, waitErr := e.Wait(never); err != nil || waitErr != nil || !s.Cancelled {
			return fmt.Errorf("the cancelled receive returned %+v, %w, %w", s, err, waitErr)
		}
		if err := e.Cancel(taken); err != nil {
			return err
		}
		if s, err := e.Wait(taken); err != nil || s.Cancelled {
			return fmt.Errorf("the other receive returned %+v, %w", s, err)
		}
		return nil
	})
}

// TestTruncation checks that a truncated message is an error at its receiver and does not affect
// its sender, on every kind of channel.
func TestTruncation(t *testing.T) {
	everyWay(t, 2, func(_ *localworld.World, p view.Process, e *engine.Engine) error {
		for _, size := range []int{100, 200_000} {
			if p.Rank == 0 {
				if err := e.Send(context2, 1, 0, make([]byte, size), engine.Standard); err != nil {
					return err
				}
				continue
			}
			var truncated *engine.TruncateError
			_, err := e.Recv(context2, 0, 0, make([]byte, size-1))
			if !errors.As(err, &truncated) || truncated.Status.Size != size {
				return fmt.Errorf("%d bytes: %w", size, err)
			}
		}
		return nil
	})
}

// TestUnexpectedMessagesAreBounded checks that credit bounds the messages that a receiver must keep.
// Further messages wait at their sender.
func TestUnexpectedMessagesAreBounded(t *testing.T) {
	const messages, size = 200, 60 << 10
	for _, name := range []string{"self", "rings", "sockets"} {
		sent := make(chan struct{})
		job := localworld.New(context.Background(), configs(2)[name])
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			defer job.Finish(p)
			if p.Rank == 0 {
				n, err := flood(e, messages, size, sent)
				if n > 2<<20/size {
					err = fmt.Errorf("%d messages of %d bytes were sent before any was received", n, size)
				}
				return errors.Join(err, e.Flush())
			}
			<-sent
			for range messages {
				if _, err := e.Recv(context2, 0, 0, make([]byte, size)); err != nil {
					return err
				}
			}
			return e.Flush()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flood starts sends to rank 1, closes sent, and waits for the sends. It returns the number of sends
// that ended before sent was closed.
func flood(e *engine.Engine, messages, size int, sent chan<- struct{}) (int, error) {
	var rs []*engine.Request
	buf := make([]byte, size)
	for range messages {
		r, err := e.Isend(context2, 1, 0, buf, engine.Standard)
		if err != nil {
			return 0, err
		}
		rs = append(rs, r)
	}
	done, err := e.Testsome(rs)
	close(sent)
	for _, r := range rs {
		if _, err := e.Wait(r); err != nil {
			return 0, err
		}
	}
	return len(done), err
}
