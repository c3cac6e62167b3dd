package protected_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// soon returns a context that ends a hanging test.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("hangs"))
	t.Cleanup(cancel)
	return ctx
}

// until waits until a condition holds or the engine has stopped.
func until(e *engine.Engine, condition func() bool) error {
	for !condition() {
		if err := e.Context().Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return nil
}

// ended flushes and finishes a process whose program has returned err.
func ended(job *localworld.World, p view.Process, e *engine.Engine, err error) error {
	if err == nil {
		err = e.Flush()
	}
	job.Finish(p)
	return err
}

// TestR3AFloodIsBounded checks the memory bounds of an exchange in which no program receives at
// first. Each replica of the receiver may then hold the messages that the credit of the fastest
// replica allows. A replica that is behind the fastest may hold the messages that the credit of
// every replica allows. The sender keeps only messages that its receivers lack or have not
// acknowledged.
func TestR3AFloodIsBounded(t *testing.T) {
	const quickest, each, size, messages = 5_000, 20_000, 300, 200
	defer protected.SetWindows(quickest, each)()
	// Bytes beyond the credit, and bytes that have been received and not reported.
	const over = quickest/8 + 2*size
	for _, replicas := range []int{2, 3} {
		t.Run(fmt.Sprintf("r=%d", replicas), func(t *testing.T) {
			job := localworld.New(soon(t), localworld.Config{Ranks: 2, Replicas: replicas})
			senders := make([]atomic.Pointer[engine.Engine], replicas)
			var looked atomic.Int32 // number of receivers that have checked their memory
			err := job.Run(func(p view.Process, e *engine.Engine) error {
				if p.Rank == 0 {
					senders[p.Replica].Store(e)
					return ended(job, p, e, sendMany(e, messages, size, each+over+32*size))
				}
				err := until(e, func() bool { return waits(senders, messages) })
				if got := protected.Unreceived(e); got > quickest+over {
					err = fmt.Errorf("%v buffers %d bytes before any receive, want at most %d", p, got, quickest+over)
				}
				looked.Add(1)
				err = errors.Join(err, until(e, func() bool { return looked.Load() == int32(replicas) }))
				for i := 0; i < messages && err == nil; i++ {
					if p.Replica == 1 && i < messages/2 { // this replica is slow
						err = until(e, func() bool { return waits(senders, messages) })
					}
					if got := protected.Unreceived(e); got > each+over {
						err = fmt.Errorf("%v buffers %d unreceived bytes, want at most %d", p, got, each+over)
					}
					err = errors.Join(err, receive(e, 0, 0, size))
				}
				return ended(job, p, e, err)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func sendMany(e *engine.Engine, messages, size, bound int) error {
	for range messages {
		if err := e.Send(context2, 1, 0, make([]byte, size), engine.Standard); err != nil {
			return err
		}
		if got := protected.Retained(e); got > bound {
			return fmt.Errorf("%d bytes are retained, want at most %d", got, bound)
		}
	}
	return nil
}

// waits reports whether a sender waits, has ended or has sent all messages.
func waits(senders []atomic.Pointer[engine.Engine], messages int) bool {
	for k := range senders {
		if e := senders[k].Load(); e != nil && (protected.WaitingSends(e) > 0 || e.Context().Err() != nil || protected.SentTo(e, context2, 1) == uint64(messages)) {
			return true
		}
	}
	return false
}

// exchanges contains programs that MPI allows even without any buffering: every send beyond the
// credit ends when its message is received, whatever other operations wait.
var exchanges = map[string]func(p view.Process, e *engine.Engine) error{
	"the first message is received last": func(p view.Process, e *engine.Engine) error {
		if p.Rank == 1 {
			return errors.Join(receive(e, 0, 2, 10), receive(e, 0, 1, 1<<20+1), receive(e, 0, 0, 1000))
		}
		first, err := e.Isend(context2, 1, 0, make([]byte, 1000), engine.Standard)
		second, err2 := e.Isend(context2, 1, 1, make([]byte, 1<<20+1), engine.Standard)
		if err := errors.Join(err, err2, e.Send(context2, 1, 2, make([]byte, 10), engine.Standard)); err != nil {
			return err
		}
		return waitAll(e, first, second)
	},
	"many messages are received in reverse order": func(p view.Process, e *engine.Engine) error {
		const messages = 300
		var rs []*engine.Request
		for i := range messages {
			if p.Rank == 1 {
				if err := receive(e, 0, int32(messages-1-i), 100); err != nil {
					return err
				}
				continue
			}
			r, err := e.Isend(context2, 1, int32(i), make([]byte, 100), engine.Standard)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		for i := len(rs) - 1; i >= 0; i-- {
			if err := waitAll(e, rs[i]); err != nil {
				return err
			}
		}
		return nil
	},
	"head to head": func(p view.Process, e *engine.Engine) error {
		other, buf := 1-p.Rank, make([]byte, 1<<20+1)
		_, err := e.Sendrecv(context2, other, 0, make([]byte, 1<<20+1), other, 0, buf)
		return err
	},
	"nonblocking sends, then receives from AnySource": func(p view.Process, e *engine.Engine) error {
		var rs []*engine.Request
		for i := range 40 {
			r, err := e.Isend(context2, 1-p.Rank, int32(i), make([]byte, 100), engine.Mode(i%2))
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		for range 40 {
			if err := receive(e, engine.AnySource, engine.AnyTag, 100); err != nil {
				return err
			}
		}
		for len(rs) > 0 {
			i, err := e.Waitany(rs)
			if err != nil {
				return err
			}
			rs = append(rs[:i], rs[i+1:]...)
		}
		return nil
	},
	"to itself": func(p view.Process, e *engine.Engine) error {
		for i := range 20 {
			r, err := e.Isend(context2, p.Rank, int32(i), make([]byte, 100), engine.Mode(i%2))
			if err := errors.Join(err, receive(e, p.Rank, int32(i), 100), waitAll(e, r)); err != nil {
				return err
			}
		}
		return nil
	},
	"messages that are never received": func(p view.Process, e *engine.Engine) error {
		_, err := e.Isend(context2, 1-p.Rank, 0, make([]byte, 100), engine.Standard)
		_, err2 := e.Isend(context2, 1-p.Rank, 0, make([]byte, 100), engine.Synchronous)
		return errors.Join(err, err2)
	},
}

func receive(e *engine.Engine, source int, tag int32, size int) error {
	s, err := e.Recv(context2, source, tag, make([]byte, size))
	if err == nil && s.Size != size {
		err = fmt.Errorf("the process received %d bytes, want %d", s.Size, size)
	}
	return err
}

func waitAll(e *engine.Engine, rs ...*engine.Request) (err error) {
	for _, r := range rs {
		_, waited := e.Wait(r)
		err = errors.Join(err, waited)
	}
	return err
}

func TestSafeProgramsEndWithoutCredit(t *testing.T) {
	defer protected.SetWindows(1, 1)()
	for name, program := range exchanges {
		for _, replicas := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s/r=%d", name, replicas), func(t *testing.T) {
				job := localworld.New(soon(t), localworld.Config{Ranks: 2, Replicas: replicas, Rings: replicas == 2})
				err := job.Run(func(p view.Process, e *engine.Engine) error { return ended(job, p, e, program(p, e)) })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestProgramsThatNeedBuffersEnd checks that programs that end without replicas, thanks to
// buffering, also end with replicas.
func TestProgramsThatNeedBuffersEnd(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		job := localworld.New(soon(t), localworld.Config{Ranks: 2, Replicas: replicas, Sockets: true})
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			other := 1 - p.Rank
			r, err := e.Isend(context2, other, 1, make([]byte, 2<<20), engine.Standard) // waits, and uses no credit
			if err != nil {
				return err
			}
			for range 30 {
				if err := e.Send(context2, other, 0, make([]byte, 60_000), engine.Standard); err != nil {
					return err
				}
			}
			for range 30 {
				if err := receive(e, other, 0, 60_000); err != nil {
					return err
				}
			}
			return ended(job, p, e, errors.Join(receive(e, other, 1, 2<<20), waitAll(e, r)))
		})
		if err != nil {
			t.Errorf("r=%d: %v", replicas, err)
		}
	}
}

// TestR2MasterIsLostWhileItsSendWaits checks the loss of a master whose send waits. The send of the
// next master then also waits until the message is received.
func TestR2MasterIsLostWhileItsSendWaits(t *testing.T) {
	defer protected.SetWindows(1, 1)()
	for _, mode := range []engine.Mode{engine.Standard, engine.Synchronous} {
		job := localworld.New(soon(t), localworld.Config{Ranks: 2, Replicas: 2})
		senders := make([]atomic.Pointer[engine.Engine], 2)
		var waited [3]atomic.Bool // a receiver that is behind may look only after the send is done
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			if p.Rank == 0 {
				senders[p.Replica].Store(e)
				for i := range 3 {
					if err := e.Send(context2, 1, int32(i), make([]byte, 100), mode); err != nil {
						return err
					}
				}
				return ended(job, p, e, nil)
			}
			for i := range 3 {
				err := until(e, func() bool {
					s := senders[1].Load()
					if s != nil && (protected.WaitingSends(s) > 0 || i == 0 && mode == engine.Standard && protected.SentTo(s, context2, 1) > 0) {
						waited[i].Store(true)
					}
					return waited[i].Load()
				})
				if err != nil {
					return err
				}
				if i == 1 && p.Replica == 0 {
					job.Kill(view.Process{Rank: 0})
				}
				if err := receive(e, 0, int32(i), 100); err != nil {
					return err
				}
			}
			return ended(job, p, e, nil)
		})
		if err != nil {
			t.Errorf("mode %d: %v", mode, err)
		}
	}
}

// TestSendsWaitForCreditAfterTheLoadFalls checks that sends that have waited for the load to fall
// still wait for their receives, even several sends at once. With replicas on the same machine, the
// goroutine that queues a frame also writes it.
func TestSendsWaitForCreditAfterTheLoadFalls(t *testing.T) {
	defer protected.SetWindows(1, 1_000_000)()
	defer protected.SetFlowLimit(1000)()
	const messages, size = 10, 900
	job := localworld.New(soon(t), localworld.Config{Ranks: 2, Replicas: 2, Rings: true})
	senders := make([]atomic.Pointer[engine.Engine], 2)
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		var err error
		if p.Rank == 0 {
			senders[p.Replica].Store(e)
			var rs []*engine.Request
			for i := range messages {
				r, failed := e.Isend(context2, 1, int32(i), make([]byte, size), engine.Standard)
				rs, err = append(rs, r), errors.Join(err, failed)
			}
			if err == nil {
				err = waitAll(e, rs...)
			}
			return ended(job, p, e, err)
		}
		err = until(e, func() bool { // all messages have arrived, and none is received
			for k := range senders {
				s := senders[k].Load()
				if s == nil || protected.SentTo(s, context2, 1) < messages || protected.Retained(s) > 0 {
					return false
				}
			}
			return true
		})
		for i := messages - 1; i >= 0 && err == nil; i-- {
			err = receive(e, 0, int32(i), size)
		}
		return ended(job, p, e, err)
	})
	if err != nil {
		t.Error(err)
	}
}
