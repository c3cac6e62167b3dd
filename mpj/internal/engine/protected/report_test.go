package protected_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A reporter is a sender that loses the first Receipt, and breaks.
type reporter struct {
	channel.Sender
	lost, queried func() // called when the Receipt is lost, and when a Query has been sent
	broken        chan struct{}
}

func (r *reporter) Broken() <-chan struct{} { return r.broken }

func (r *reporter) Send(frames ...frame.Frame) error {
	has := func(k frame.Kind) bool {
		return slices.ContainsFunc(frames, func(f frame.Frame) bool { return f.Kind == k })
	}
	if r.lost != nil && has(frame.Receipt) {
		r.lost()
		close(r.broken)
		return nil
	}
	err := r.Sender.Send(frames...)
	if has(frame.Query) {
		r.queried()
	}
	return err
}

// TestR2AnswerBeforeTheChannelIsOpen loses a Receipt with its channel. The sender of the message
// notices the next channel at once, and asks again. The answer is queued before the goroutine that
// opens that channel can use it. The engine must not mistake the answer for a frame of the previous
// channel.
func TestR2AnswerBeforeTheChannelIsOpen(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errors.New("hangs"))
	defer cancel()
	const matched, asked = 0, 1 // tags
	s, r := view.Process{Rank: 0}, view.Process{Rank: 1}
	engines := make(chan *engine.Engine, 1) // engine of r
	var lost, queried sync.Once
	once, query, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	config := localworld.Config{Ranks: 2, Replicas: 2, Wrap: func(_, _ view.Process, inner channel.Sender) channel.Sender {
		w := &reporter{Sender: inner, broken: make(chan struct{}), queried: func() { queried.Do(func() { close(query) }) }}
		select {
		case <-once: // on the next channel from r to s, wait until r has answered
			e := <-engines
			e.Recv(context2, 0, asked, nil) // ends at the latest with ctx
		default:
			w.lost = func() { lost.Do(func() { close(once) }) }
		}
		return w
	}}
	job := localworld.New(ctx, config)
	job.Kill(view.Process{Rank: 0, Replica: 1}) // otherwise these replicas would also report
	job.Kill(view.Process{Rank: 1, Replica: 1})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		switch p {
		case s:
			defer close(done)
			request, err := e.Isend(context2, 1, matched, nil, engine.Synchronous)
			if err != nil {
				return err
			}
			select {
			case <-query:
			case <-ctx.Done():
			}
			err = e.Send(context2, 1, asked, nil, engine.Standard)
			_, waited := e.Wait(request)
			return errors.Join(err, waited)
		case r:
			engines <- e
			_, err := e.Recv(context2, 0, matched, nil)
			<-done
			return err
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A loser is a sender that loses its frames and reports an error.
type loser struct {
	channel.Sender
	losing func(frames []frame.Frame)
}

func (l loser) Send(frames ...frame.Frame) error {
	l.losing(frames)
	return errors.New("broken by the test")
}

// TestR2QueueDoesNotGrowWithBrokenChannels breaks several channels in succession, each with its
// first frames. Whenever a channel is opened, both processes ask and report again. The queue must not
// collect these frames: otherwise a channel that breaks early would never carry all of it.
func TestR2QueueDoesNotGrowWithBrokenChannels(t *testing.T) {
	defer protected.SetWindows(1, 1)() // each receive is reported at once
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errors.New("hangs"))
	defer cancel()
	const channels = 6
	var opened int // by the one goroutine that opens channels from rank 1 to rank 0
	most := make(map[frame.Kind]int)
	losing := func(frames []frame.Frame) {
		times := make(map[frame.Header]int)
		for _, f := range frames {
			times[f.Header]++
			most[f.Kind] = max(most[f.Kind], times[f.Header])
		}
	}
	job := localworld.New(ctx, localworld.Config{Ranks: 2, Replicas: 2, Wrap: func(from, to view.Process, s channel.Sender) channel.Sender {
		if from.Rank == 0 || to.Rank == 1 {
			return s
		}
		if opened++; opened > channels {
			return s
		}
		return loser{s, losing}
	}})
	job.Kill(view.Process{Rank: 0, Replica: 1}) // otherwise these replicas would also report
	job.Kill(view.Process{Rank: 1, Replica: 1})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		if p.Replica != 0 {
			return nil
		}
		r, err := e.Isend(context2, 1-p.Rank, 0, nil, engine.Synchronous)
		if err != nil {
			return err
		}
		err = receive(e, 1-p.Rank, 0, 0)
		return ended(job, p, e, errors.Join(err, waitAll(e, r)))
	})
	if err != nil {
		t.Error(err)
	}
	for _, k := range []frame.Kind{frame.Query, frame.Receipt, frame.Taken} {
		if n := most[k]; n < 1 || n > 2 { // a match is reported twice if it was also asked for
			t.Errorf("a queue contained a frame of kind %d %d times, want 1 or 2", k, n)
		}
	}
}
