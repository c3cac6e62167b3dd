package mpj

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A drill kills a process of a job, makes a new process join its rank, and then kills all original
// processes of the rank.
type drill struct {
	job    *localworld.World
	victim view.Process

	mu     sync.Mutex
	seen   map[view.Process][]string // observations of each process
	new    view.Process
	err    error
	first  sync.Once
	second sync.Once
	joined chan struct{} // closed when the new process has caught up

	restored int // number of rounds that a new process did not repeat
}

func newDrill(job *localworld.World, victim view.Process) *drill {
	return &drill{job: job, victim: victim, seen: make(map[view.Process][]string), joined: make(chan struct{})}
}

// The round after which the victim is killed, the round after which all processes wait for the new
// process, and the number of rounds.
const (
	drillKill = 10
	drillWait = 20
	drillAll  = 40
)

// round ends a round of w with its observation.
func (d *drill) round(w *World, round int, observed string) {
	p := view.Process{Rank: w.Rank(), Replica: w.Replica()}
	d.mu.Lock()
	d.seen[p] = append(d.seen[p], observed)
	d.mu.Unlock()
	switch round {
	case drillKill:
		d.first.Do(func() {
			d.job.Kill(d.victim)
			d.new, d.err = d.job.Join(d.victim.Rank, func(uint64, uint64) { close(d.joined) })
		})
	case drillWait:
		select {
		case <-d.joined:
		case <-w.engine().Context().Done():
		}
		d.second.Do(func() {
			for k := range d.new.Replica {
				if p := (view.Process{Rank: d.new.Rank, Replica: k}); p != d.victim {
					d.job.Kill(p)
				}
			}
		})
	}
}

// check checks that all processes have made the same observations, and that the new process has made
// every observation.
func (d *drill) check(t *testing.T) {
	if d.err != nil {
		t.Fatal(d.err)
	}
	if got := len(d.seen[d.new]); got != drillAll {
		t.Errorf("%v has seen %d rounds, want %d", d.new, got, drillAll)
	}
	for p, seen := range d.seen {
		for q, other := range d.seen {
			if n := min(len(seen), len(other)); p.Rank == q.Rank && !slices.Equal(seen[:n], other[:n]) {
				t.Errorf("%v saw\n%v\n%v saw\n%v", p, seen, q, other)
			}
		}
	}
}

// mixed is a program whose ranks perform all operations that are hard to repeat. Rank 0 receives
// from any source; all ranks take part in collectives, draw random numbers, send to themselves, and
// wait until their messages are received.
func mixed(d *drill, w *World) error {
	sum, got := make([]int, 1), make([]int, 1)
	rng := w.Rand(7)
	for round := range drillAll {
		observed := fmt.Sprint(w.RandomSeed()%1000, w.Wtime())
		if w.Rank() == 0 {
			for range 2 * (w.Size() - 1) {
				s, err := Recv(w.Comm, got, AnySource, AnyTag)
				if err != nil {
					return err
				}
				observed += fmt.Sprint(" ", s.Source, got)
			}
		} else {
			err := first(Send(w.Comm, []int{round}, 0, 1), Ssend(w.Comm, []int{-round}, 0, 2))
			if err != nil {
				return err
			}
		}
		self, err := Irecv(w.Comm, got, w.Rank(), 3)
		if err := first(err, Send(w.Comm, []int{rng.IntN(100)}, w.Rank(), 3)); err != nil {
			return err
		}
		if err := first(last(self.Wait()), Allreduce(w.Comm, []int{round + got[0]}, sum, Sum)); err != nil {
			return err
		}
		d.round(w, round, fmt.Sprint(observed, got, sum))
	}
	return nil
}

// TestNewReplicaTakesOverTheRank checks R1 and R2 for a rank that loses all its original replicas
// after a new replica has joined.
func TestNewReplicaTakesOverTheRank(t *testing.T) {
	skip.Long(t)
	shapes := []localworld.Config{
		{Ranks: 3, Replicas: 2}, {Ranks: 2, Replicas: 3}, {Ranks: 3, Replicas: 2, Sockets: true}, {Ranks: 3, Replicas: 2, Rings: true},
	}
	for _, shape := range shapes {
		for _, victim := range []view.Process{{Rank: 0}, {Rank: 0, Replica: 1}, {Rank: 1}, {Rank: 1, Replica: 1}} {
			t.Run(fmt.Sprintf("n=%d r=%d sockets %v rings %v, %v lost", shape.Ranks, shape.Replicas, shape.Sockets, shape.Rings, victim), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				shape.Heal = t.TempDir()
				d := newDrill(localworld.New(ctx, shape), victim)
				if err := runIn(d.job, func(w *World) error { return mixed(d, w) }); err != nil {
					t.Fatal(err)
				}
				d.check(t)
			})
		}
	}
}
