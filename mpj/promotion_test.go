package mpj

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// moves runs program while the master of each rank changes repeatedly, with and without a failure.
func moves(t *testing.T, replicas int, program func(*trial, *World) error) {
	for _, every := range []int64{1, 7} {
		for _, plan := range [][]victim{nil, {victims[1]}} {
			t.Run(fmt.Sprintf("r=%d, each %d rounds, %v", replicas, every, plan), func(t *testing.T) {
				tr := &trial{
					job:  localworld.New(context.Background(), localworld.Config{Ranks: 3, Replicas: replicas, Sockets: every > 1}),
					seen: make(map[view.Process][]string), kill: make(map[int64]victim), moves: every,
				}
				for i, v := range plan {
					tr.kill[int64(20+i)] = v
				}
				if err := runIn(tr.job, func(w *World) error { return program(tr, w) }); err != nil {
					t.Fatal(err)
				}
				tr.compare(t, plan)
			})
		}
	}
}

func TestR1MastershipMovesBetweenReplicas(t *testing.T) {
	for name, receive := range wildKinds {
		t.Run(name, func(t *testing.T) {
			moves(t, 2, wild(receive))
			moves(t, 3, wild(receive))
		})
	}
}

// TestR4PostedWildcardFollowsTheMaster replaces a master that has posted a wildcard receive without
// a matching message. The outcome of the new master must apply to that receive.
func TestR4PostedWildcardFollowsTheMaster(t *testing.T) {
	job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2})
	posted := make(chan struct{}, 4)
	err := runIn(job, func(w *World) error {
		if w.Rank() == 1 {
			for range 2 {
				<-posted
			}
			if w.Replica() == 0 {
				job.Promote(view.Process{Replica: 1})
			}
			return Send(w.Comm, []int{7}, 0, 0)
		}
		buf := make([]int, 1)
		r, err := Irecv(w.Comm, buf, AnySource, AnyTag)
		posted <- struct{}{}
		posted <- struct{}{}
		if err := first(err, last(r.Wait())); err != nil {
			return err
		}
		return want("Irecv", buf, []int{7})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMastershipMovesToTheReplicaThatIsAhead checks that a replica that is ahead becomes master.
// Rank 0's master continues only after it is no longer master.
func TestMastershipMovesToTheReplicaThatIsAhead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ahead := make(chan view.Process, 4)
	var job *localworld.World
	job = localworld.New(ctx, localworld.Config{Ranks: 2, Replicas: 2, Ahead: func(p view.Process) {
		job.Promote(p)
		ahead <- p
	}})
	err := runIn(job, func(w *World) error {
		buf := make([]int, 1)
		for round := range 10 {
			if w.Rank() == 1 {
				if err := first(last(Recv(w.Comm, buf, 0, 0)), Send(w.Comm, buf, 0, 0)); err != nil {
					return err
				}
				continue
			}
			if round == 5 && w.Replica() == 0 {
				select {
				case p := <-ahead:
					if p != (view.Process{Replica: 1}) {
						return fmt.Errorf("%v is ahead", p)
					}
				case <-ctx.Done():
					return fmt.Errorf("no replica is ahead")
				}
			}
			if err := first(Send(w.Comm, []int{round}, 1, 0), last(Recv(w.Comm, buf, 1, 0))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
