package mpj

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A victim is a process that a test kills.
type victim struct {
	view.Process
	self bool // whether rounds of the victim count, instead of rounds of all processes
}

var victims = []victim{
	{view.Process{Rank: 0, Replica: 0}, true}, {view.Process{Rank: 0, Replica: 0}, false},
	{view.Process{Rank: 0, Replica: 1}, true}, {view.Process{Rank: 0, Replica: 1}, false},
	{view.Process{Rank: 2, Replica: 0}, true}, {view.Process{Rank: 2, Replica: 0}, false},
	{view.Process{Rank: 1, Replica: 1}, false},
}

// A trial runs a program with 3 ranks and kills victims while it runs.
type trial struct {
	job  *localworld.World
	mu   sync.Mutex
	seen map[view.Process][]string // observations of each process

	rounds atomic.Int64
	moves  int64            // number of rounds after which another replica becomes master
	kill   map[int64]victim // by round of all processes
	dying  map[view.Process]int
}

// see records an observation of w, and kills the victims that are due.
func (tr *trial) see(w *World, format string, args ...any) {
	p := view.Process{Rank: w.Rank(), Replica: w.Replica()}
	tr.mu.Lock()
	tr.seen[p] = append(tr.seen[p], fmt.Sprintf(format, args...))
	n := len(tr.seen[p])
	tr.mu.Unlock()
	if at, ok := tr.dying[p]; ok && n == at {
		tr.job.Kill(p)
	}
	round := tr.rounds.Add(1)
	if v, ok := tr.kill[round]; ok {
		tr.job.Kill(v.Process)
	}
	if tr.moves > 0 && round%tr.moves == 0 {
		tr.job.Promote(view.Process{Rank: int(round/tr.moves) % 3, Replica: int(round/tr.moves/3) % 3})
	}
}

// kills runs program with each victim, killed early and late, and twice with two victims.
func kills(t *testing.T, replicas int, program func(*trial, *World) error) {
	plans := [][]victim{nil, {victims[1], victims[4]}, {victims[2], victims[5]}}
	for _, v := range victims {
		plans = append(plans, []victim{v})
	}
	for _, plan := range plans {
		for _, at := range []int{3, 15} {
			t.Run(fmt.Sprintf("%v at %d", plan, at), func(t *testing.T) {
				tr := &trial{
					job:  localworld.New(context.Background(), localworld.Config{Ranks: 3, Replicas: replicas, Sockets: at == 15}),
					seen: make(map[view.Process][]string),
					kill: make(map[int64]victim), dying: make(map[view.Process]int),
				}
				for i, v := range plan {
					if v.self {
						tr.dying[v.Process] = at
					} else {
						tr.kill[int64(3*at+i)] = v
					}
				}
				if err := runIn(tr.job, func(w *World) error { return program(tr, w) }); err != nil {
					t.Fatal(err)
				}
				tr.compare(t, plan)
			})
		}
	}
}

// compare checks R1: the replicas of a rank have made the same observations, and a killed replica
// has made the first of them.
func (tr *trial) compare(t *testing.T, plan []victim) {
	for rank := range 3 {
		var whole []string
		for p, seen := range tr.seen {
			if p.Rank == rank && len(seen) > len(whole) {
				whole = seen
			}
		}
		for p, seen := range tr.seen {
			killed := slices.ContainsFunc(plan, func(v victim) bool { return v.Process == p })
			if p.Rank == rank && (!slices.Equal(seen, whole[:len(seen)]) || !killed && len(seen) < len(whole)) {
				t.Errorf("%v saw\n%v\nanother replica saw\n%v", p, seen, whole)
			}
		}
	}
}

func TestR2CollectivesSurviveKills(t *testing.T) {
	kills(t, 2, func(tr *trial, w *World) error {
		all, sum := make([]int, 3), make([]int, 1)
		for round := range 30 {
			if err := Allreduce(w.Comm, []int{round + w.Rank()}, sum, Sum); err != nil {
				return err
			}
			if err := Allgather(w.Comm, sum, all); err != nil {
				return err
			}
			if err := want("Allgather", all, []int{3*round + 3, 3*round + 3, 3*round + 3}); err != nil {
				return err
			}
			tr.see(w, "%v", all)
		}
		return nil
	})
}

// TestSynchronousSendToSelfEnds checks that a synchronous send of a process to itself completes,
// although the message is matched during the send.
func TestSynchronousSendToSelfEnds(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for round := range 3 {
			posted, err := Irecv(w.Comm, make([]int, 1), w.Rank(), round)
			if err := first(err, Ssend(w.Comm, []int{round}, w.Rank(), round)); err != nil {
				return err
			}
			if err := last(posted.Wait()); err != nil {
				return err
			}
			sent, err := Issend(w.Comm, []int{round}, w.Rank(), round)
			if err := first(err, last(Recv(w.Comm, make([]int, 1), w.Rank(), round))); err != nil {
				return err
			}
			if err := last(sent.Wait()); err != nil {
				return err
			}
		}
		return nil
	})
}

const wildMessages = 12 // messages from each of ranks 1 and 2 to rank 0 in the tests below

// wild is a program in which rank 0 receives with a nondeterministic call, and sends the others the
// data that it has received.
func wild(receive func(*receiver, *trial, *World, int) (int, error)) func(*trial, *World) error {
	return func(tr *trial, w *World) error {
		if w.Rank() > 0 {
			return sendAndListen(tr, w)
		}
		var v receiver
		for round := range 2 * wildMessages {
			got, err := receive(&v, tr, w, round)
			if err != nil {
				return err
			}
			tr.see(w, "%d", got)
			for dest := 1; dest < 3; dest++ {
				if err := Send(w.Comm, []int{got}, dest, 9); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func sendAndListen(tr *trial, w *World) error {
	heard := make([]int, 1)
	for i := range wildMessages {
		if err := Send(w.Comm, []int{100*w.Rank() + i}, 0, i%3); err != nil {
			return err
		}
		for range 2 {
			if _, err := Recv(w.Comm, heard, 0, 9); err != nil {
				return err
			}
			tr.see(w, "%d", heard[0])
		}
	}
	return nil
}

// wildKinds lists the kinds of receives whose outcomes differ between runs.
var wildKinds = map[string]func(*receiver, *trial, *World, int) (int, error){
	"Recv":    (*receiver).recvAny,
	"Probe":   (*receiver).probeAny,
	"Iprobe":  (*receiver).iprobeAny,
	"Waitany": (*receiver).waitAny,
	"Test": polled(func(r *Request) (bool, error) {
		_, done, err := r.Test()
		return done, err
	}),
	"Testall": polled(func(r *Request) (bool, error) {
		_, done, err := Testall(r)
		return done, err
	}),
	"Testany": polled(func(r *Request) (bool, error) {
		_, _, done, err := Testany(r, nil)
		return done, err
	}),
	"Testsome": polled(func(r *Request) (bool, error) {
		indices, _, err := Testsome(nil, r)
		return len(indices) == 1, err
	}),
	"Waitsome": polled(func(r *Request) (bool, error) {
		indices, _, err := Waitsome(r)
		return len(indices) == 1, err
	}),
}

func TestR4WildcardsAreDecidedOnce(t *testing.T) {
	for name, receive := range wildKinds {
		t.Run(name, func(t *testing.T) {
			kills(t, 2, wild(receive))
		})
	}
}

// TestR4TakeoverAsksTheOtherReplicas uses three replicas, so that the new master must ask the third
// replica.
func TestR4TakeoverAsksTheOtherReplicas(t *testing.T) {
	kills(t, 3, wild((*receiver).recvAny))
	kills(t, 3, wild((*receiver).waitAny))
}

// A receiver is the state of rank 0 between rounds.
type receiver struct {
	requests [2]*Request
	bufs     [2][]int
}

func (*receiver) recvAny(_ *trial, w *World, _ int) (int, error) {
	buf := make([]int, 1)
	_, err := Recv(w.Comm, buf, AnySource, AnyTag)
	return buf[0], err
}

func (*receiver) probeAny(_ *trial, w *World, _ int) (int, error) {
	s, err := Probe(w.Comm, AnySource, AnyTag)
	if err != nil {
		return 0, err
	}
	buf := make([]int, Count[int](s))
	_, err = Recv(w.Comm, buf, s.Source, s.Tag)
	return buf[0], err
}

func (*receiver) iprobeAny(tr *trial, w *World, round int) (int, error) {
	for {
		s, ok, err := Iprobe(w.Comm, AnySource, AnyTag)
		if err != nil {
			return 0, err
		}
		if ok {
			buf := make([]int, Count[int](s))
			_, err = Recv(w.Comm, buf, s.Source, s.Tag)
			return buf[0], err
		}
	}
}

// polled receives with a function of the Test family, or Waitsome, and records the number of calls.
func polled(test func(*Request) (done bool, err error)) func(*receiver, *trial, *World, int) (int, error) {
	return func(_ *receiver, tr *trial, w *World, _ int) (int, error) {
		buf := make([]int, 1)
		r, err := Irecv(w.Comm, buf, AnySource, AnyTag)
		if err != nil {
			return 0, err
		}
		for tests := 0; ; tests++ {
			now := w.Wtime() // before the test, because the time of a killed process no longer changes
			done, err := test(r)
			if err != nil {
				return 0, err
			}
			if done {
				s, err := r.Wait() // r was already reported, so Wait returns at once, with the same result
				tr.see(w, "%d tests, %v, at %v", tests, s, now)
				return buf[0], err
			}
		}
	}
}

// waitAny posts two receives at a time, and completes one in an even round and the other in the next
// round.
func (v *receiver) waitAny(_ *trial, w *World, round int) (int, error) {
	if round%2 == 0 {
		v.bufs = [2][]int{make([]int, 1), make([]int, 1)}
		for i := range v.requests {
			r, err := Irecv(w.Comm, v.bufs[i], AnySource, AnyTag)
			if err != nil {
				return 0, err
			}
			v.requests[i] = r
		}
	}
	i, _, err := Waitany(v.requests[:]...)
	if err != nil {
		return 0, err
	}
	return v.bufs[i][0], nil
}
