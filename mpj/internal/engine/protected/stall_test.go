package protected_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A held is a sender that waits until its gate is open.
type held struct {
	channel.Sender
	gate chan struct{}
}

func (h held) Send(frames ...frame.Frame) error {
	<-h.gate
	return h.Sender.Send(frames...)
}

// TestR4RankContinuesWithoutAReplicaThatIsAside cuts off a replica. Its master reports the stall,
// continues once the replica is set aside, and decides a hundred times. Then the replica is
// connected again. It must see the same outcomes, count again, and take over when its master is
// killed.
func TestR4RankContinuesWithoutAReplicaThatIsAside(t *testing.T) {
	master, silent := view.Process{}, view.Process{Replica: 1}
	cut, gate := make(chan struct{}), make(chan struct{})
	var job *localworld.World
	var once sync.Once
	job = localworld.New(context.Background(), localworld.Config{
		Ranks: 1, Replicas: 2,
		Wrap:    func(_, _ view.Process, s channel.Sender) channel.Sender { return held{s, gate} },
		Ahead:   func(view.Process) {},
		Stalled: func(view.Process) { once.Do(func() { close(cut) }); job.SetAside(silent) },
	})
	const decisions = 100
	await := func(done func() bool) error {
		for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) { // interval between polls
			if time.Now().After(end) {
				return errors.New("timed out waiting for a view")
			}
		}
		return nil
	}
	var times [2][decisions]float64
	there := make(chan struct{})
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		for i := range decisions {
			times[p.Replica][i] = e.Wtime()
		}
		if p == master {
			select {
			case <-cut:
			default:
				t.Error("the master did not report the stall")
			}
			close(gate)
			<-there
			job.Kill(p)
			return nil
		}
		if err := await(func() bool { return job.View().Counts(p) }); err != nil {
			return err
		}
		close(there)
		if err := await(func() bool { return job.View().IsMaster(p) }); err != nil {
			return err
		}
		if now := e.Wtime(); now < times[1][decisions-1] {
			t.Errorf("the new master's time is %v, after %v", now, times[1][decisions-1])
		}
		job.Finish(p)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if times[0] != times[1] {
		t.Errorf("the master has seen %v, the other replica %v", times[0], times[1])
	}
}
