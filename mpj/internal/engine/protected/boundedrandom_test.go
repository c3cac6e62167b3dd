package protected_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// A messagePlan is one message of a plan. Its send, its receive and the wait for the send each have
// a time. Every rank performs its operations in the order of their times, and waits only for earlier
// operations. So the plan ends even without any buffering.
type messagePlan struct {
	source, dest, size     int
	mode                   engine.Mode
	sent, received, waited int
	any                    bool // received from AnySource
}

func randomPlan(random *rand.Rand, ranks, messages int) []messagePlan {
	plan := make([]messagePlan, messages)
	for i := range plan {
		l := &plan[i]
		*l = messagePlan{source: random.IntN(ranks), dest: random.IntN(ranks), size: 8 + random.IntN(2000), mode: engine.Mode(random.IntN(2)), any: random.IntN(4) == 0}
		l.sent = 10 * i
		l.received = l.sent
		if random.IntN(3) > 0 || l.source == l.dest { // otherwise the send itself waits
			l.received += 1 + 10*random.IntN(20)
			l.waited = l.received + 1 + 10*random.IntN(20)
		}
	}
	return plan
}

// payload returns the payload of message i.
func (l messagePlan) payload(i int) []byte {
	b := make([]byte, l.size)
	for at := 0; at+8 <= len(b); at += 8 {
		binary.LittleEndian.PutUint64(b[at:], uint64(i*7919+at))
	}
	return b
}

// follow performs the operations of a rank. It calls acted before each step.
func follow(e *engine.Engine, rank int, plan []messagePlan, acted func()) error {
	type step struct {
		at int
		do func() error
	}
	var steps []step
	requests := make([]*engine.Request, len(plan))
	for i, l := range plan {
		if l.source == rank {
			steps = append(steps, step{l.sent, func() (err error) {
				if l.waited == 0 {
					return e.Send(context2, l.dest, int32(i), l.payload(i), l.mode)
				}
				requests[i], err = e.Isend(context2, l.dest, int32(i), l.payload(i), l.mode)
				return err
			}})
			if l.waited > 0 {
				steps = append(steps, step{l.waited, func() error { return waitAll(e, requests[i]) }})
			}
		}
		if l.dest == rank {
			steps = append(steps, step{l.received, func() error {
				source, b := l.source, make([]byte, l.size)
				if l.any {
					source = engine.AnySource
				}
				_, err := e.Recv(context2, source, int32(i), b)
				if err == nil && !bytes.Equal(b, l.payload(i)) {
					err = fmt.Errorf("message %d has the wrong content", i)
				}
				return err
			}})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at - b.at })
	for _, s := range steps {
		acted()
		if err := s.do(); err != nil {
			return fmt.Errorf("step at %d: %w", s.at, err)
		}
	}
	return nil
}

var (
	plans     = flag.Int("plans", 10, "random programs to run")
	plansSeed = flag.Uint64("plans.seed", 0, "seed of the first program, or 0 for a random seed")
)

// TestRandomSafeProgramsEnd runs random programs that need no buffering, with a very small credit.
// Meanwhile replicas are lost, new ones join, masters change and channels break.
func TestRandomSafeProgramsEnd(t *testing.T) {
	seed := cmp.Or(*plansSeed, rand.Uint64())
	t.Logf("seed %d", seed)
	for i := range uint64(*plans) {
		if err := runRandomPlan(t, seed+i); err != nil {
			t.Fatalf("seed %d: %v", seed+i, err)
		}
	}
}

func runRandomPlan(t *testing.T, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0))
	near := random.IntN(5000)
	defer protected.SetWindows(near, near+random.IntN(5000))()
	if random.IntN(2) == 0 {
		defer protected.SetFlowLimit(1 + random.IntN(20_000))()
	}
	if random.IntN(2) == 0 {
		defer protected.SetReplayLimit(1 + random.IntN(20_000))()
	}
	c := localworld.Config{Ranks: 2 + random.IntN(3), Replicas: 2 + random.IntN(2), Sockets: random.IntN(2) == 0, Heal: t.TempDir()}
	if random.IntN(2) == 0 {
		c.Wrap = breaking(rand.New(rand.NewPCG(seed, 1)))
	}
	plan := randomPlan(random, c.Ranks, 30+random.IntN(150))
	f := faults{random: random, job: localworld.New(soon(t), c), sound: make(map[view.Process]bool)}
	for range random.IntN(8) {
		f.times = append(f.times, random.Int64N(int64(2*len(plan)*c.Replicas)))
	}
	for _, p := range view.New(c.Ranks, c.Replicas).Processes() {
		f.sound[p] = true
	}
	return f.job.Run(func(p view.Process, e *engine.Engine) error {
		err := follow(e, p.Rank, plan, f.step)
		if err = ended(f.job, p, e, err); err != nil && p.Replica >= c.Replicas { // the other processes had ended
			f.job.Kill(p)
			return nil
		}
		return err
	})
}

// breaking returns a wrapper that makes channels break from time to time.
func breaking(random *rand.Rand) func(_, _ view.Process, s channel.Sender) channel.Sender {
	var mu sync.Mutex
	return func(_, _ view.Process, s channel.Sender) channel.Sender {
		mu.Lock()
		defer mu.Unlock()
		return &breakingSender{s, 10 + random.IntN(200)}
	}
}

// faults injects events into a job, at some of the steps of its processes.
type faults struct {
	job   *localworld.World
	steps atomic.Int64
	times []int64

	mu     sync.Mutex
	random *rand.Rand
	sound  map[view.Process]bool // processes that have their rank's complete state
}

func (f *faults) step() {
	now := f.steps.Add(1)
	for _, at := range f.times {
		if at == now {
			f.inject()
		}
	}
}

// inject kills a process, adds a replica, or makes a process master.
func (f *faults) inject() {
	f.mu.Lock()
	p, ranks := f.any(), f.job.Ranks()
	kind, rank := f.random.IntN(4), f.random.IntN(ranks)
	if kind == 0 && f.spare(p) {
		delete(f.sound, p)
	} else if kind == 0 {
		kind = 1
	}
	f.mu.Unlock()
	switch kind {
	case 0:
		f.job.Kill(p)
	case 1:
		f.job.Promote(p)
	default:
		joins := make(chan view.Process, 1)
		q, err := f.job.Join(rank, func(_, _ uint64) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sound[<-joins] = true
		})
		if err == nil {
			joins <- q
		}
	}
}

// any returns a random sound process.
func (f *faults) any() view.Process {
	ps := slices.SortedFunc(maps.Keys(f.sound), func(a, b view.Process) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Replica, b.Replica))
	})
	return ps[f.random.IntN(len(ps))]
}

// spare reports whether another process of p's rank is sound.
func (f *faults) spare(p view.Process) bool {
	for q := range f.sound {
		if q.Rank == p.Rank && q != p {
			return true
		}
	}
	return false
}
