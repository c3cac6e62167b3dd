package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// unprotected runs program as the two processes of a job with r = 1, with every kind of channel,
// and with message sizes for eager and announced sends.
func unprotected(t *testing.T, program func(job *localworld.World, p view.Process, e *engine.Engine, size int) error) {
	for name, config := range configs(2) {
		for _, size := range []int{10, 100 << 10, 3 << 20} {
			if strings.HasSuffix(name, "r=2") {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d bytes", name, size), func(t *testing.T) {
				job := localworld.New(context.Background(), config)
				err := job.Run(func(p view.Process, e *engine.Engine) error { return program(job, p, e, size) })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFlushWaitsForLateReceives checks that Flush waits for a message whose receive is posted late,
// although the program does not wait for the send.
func TestFlushWaitsForLateReceives(t *testing.T) {
	for range 3 {
		sender, flushed := make(chan *engine.Engine, 1), make(chan struct{}, 1)
		unprotected(t, func(job *localworld.World, p view.Process, e *engine.Engine, size int) error {
			defer job.Finish(p)
			if p.Rank == 0 {
				_, err := e.Isend(context2, 1, 0, make([]byte, size), engine.Standard)
				sender <- e
				err = errors.Join(err, e.Flush())
				flushed <- struct{}{}
				return err
			}
			from := <-sender
			for over := false; !over && len(from.Waiting().Calls) == 0; runtime.Gosched() {
				over = len(flushed) > 0
			}
			_, err := e.Recv(context2, 0, 0, make([]byte, size))
			<-flushed
			return errors.Join(err, e.Flush())
		})
	}
}

// TestFlushRefusesUnreceivedMessages checks that two processes end although each has a message that
// it does not receive, and that each process reports its unmatched message.
func TestFlushRefusesUnreceivedMessages(t *testing.T) {
	unprotected(t, func(job *localworld.World, p view.Process, e *engine.Engine, size int) error {
		defer job.Finish(p)
		other := 1 - p.Rank
		for _, dest := range []int{other, p.Rank} {
			if _, err := e.Isend(context2, dest, 5, make([]byte, size), engine.Synchronous); err != nil {
				return err
			}
		}
		if _, err := e.Sendrecv(context2, other, 6, nil, other, 6, nil); err != nil { // so the messages of the other process have arrived
			return err
		}
		if err := e.Flush(); err != nil {
			return err
		}
		left := e.Unmatched()
		if len(left) != 2 || left[0].Status.Size != size || left[1].Status.Size != size || left[0].Status.Source+left[1].Status.Source != 1 {
			return fmt.Errorf("the unmatched messages are %+v, want one of each process", left)
		}
		return nil
	})
}

// TestSendsToAFinishedRankEnd checks that messages to a finished process are dropped at once, with
// or without an earlier channel to that process.
func TestSendsToAFinishedRankEnd(t *testing.T) {
	for _, before := range []bool{false, true} {
		finished := make(chan struct{}, 1)
		unprotected(t, func(job *localworld.World, p view.Process, e *engine.Engine, size int) error {
			defer job.Finish(p)
			if before {
				other := 1 - p.Rank
				if _, err := e.Sendrecv(context2, other, 6, nil, other, 6, nil); err != nil {
					return err
				}
			}
			if p.Rank == 1 {
				err := e.Flush()
				job.Finish(p)
				finished <- struct{}{}
				return err
			}
			<-finished
			for _, mode := range []engine.Mode{engine.Standard, engine.Synchronous} {
				if err := e.Send(context2, 1, 0, make([]byte, size), mode); err != nil {
					return err
				}
			}
			return e.Flush()
		})
	}
}
