package mpj

import (
	"bytes"
	"context"
	"errors"
	flags "flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

var planSeed = flags.Uint64("seed", 0, "seed of a single random program to run in all shapes, or 0 to run several")

// A fragile is a sender that breaks after some sends. It has then sent a part of the last message,
// or has first reported that it sent the whole message.
type fragile struct {
	channel.Sender
	left   int
	lies   bool
	broken chan struct{}
	once   sync.Once
}

func newFragile(s channel.Sender, random *rand.Rand) *fragile {
	return &fragile{Sender: s, left: 5 + random.IntN(60), lies: random.IntN(2) == 0, broken: make(chan struct{})}
}

func (f *fragile) Broken() <-chan struct{} { return f.broken }

func (f *fragile) Send(frames ...frame.Frame) error {
	if f.left--; f.left >= 0 {
		return f.Sender.Send(frames...)
	}
	f.once.Do(func() {
		if !f.lies {
			f.Sender.Send(frames[:len(frames)/2]...)
			f.Sender.Close()
		}
		close(f.broken)
	})
	if f.lies && f.left == -1 {
		return nil
	}
	return errors.New("broken by the test")
}

// An ordeal contains the conditions under which a random program runs.
type ordeal struct {
	localworld.Config
	breaks, kills bool
	threads       int // number of concurrent random programs in every process
}

func (o ordeal) String() string {
	return fmt.Sprintf("n=%d,r=%d,rings=%v,read=%v,sockets=%v,breaks=%v,kills=%v,threads=%d", o.Ranks, o.Replicas, o.Rings, o.Reading == channel.ReadAny, o.Sockets, o.breaks, o.kills, o.threads)
}

// ordeals returns all conditions for a program of n ranks.
func ordeals(n int) (all []ordeal) {
	for _, ways := range []localworld.Config{
		{}, {Rings: true}, {Rings: true, Reading: channel.ReadAny}, {Sockets: true},
	} {
		for replicas := 1; replicas <= 2; replicas++ {
			ways.Ranks, ways.Replicas = n, replicas
			all = append(all, ordeal{Config: ways, threads: 1})
			if !ways.Rings {
				all = append(all, ordeal{Config: ways, threads: 1, breaks: true})
			}
			all = append(all, ordeal{Config: ways, threads: 4}, ordeal{Config: ways, threads: 3, breaks: !ways.Rings})
			if replicas > 1 {
				all = append(all, ordeal{Config: ways, threads: 1, kills: true, breaks: !ways.Rings}, ordeal{Config: ways, threads: 3, kills: true, breaks: !ways.Rings})
			}
		}
	}
	return all
}

// TestRandomPrograms checks R1, R2 and R4: every random program gets the right results, with every
// kind of channel and every fault.
func TestRandomPrograms(t *testing.T) {
	skip.Long(t)
	base := rand.Uint64()
	if *planSeed != 0 {
		base = *planSeed
	}
	t.Logf("seed %d", base)
	start := time.Now()
	for _, n := range []int{1, 2, 3, 4} {
		for i, o := range ordeals(n) {
			if *planSeed == 0 && (uint64(i+n)+base)%3 > 0 || time.Since(start) > planBudget {
				continue // covered by other runs
			}
			if err := o.run(base); err != nil {
				t.Fatalf("-seed %d, %v: %v", base, o, err)
			}
		}
	}
}

// planBudget bounds the time of a run of random programs. Programs beyond it are skipped; other runs
// cover them.
const planBudget = 5 * time.Second

// TestRandomProgramsUnderCheck checks that checks do not change the results of random programs.
func TestRandomProgramsUnderCheck(t *testing.T) {
	t.Setenv(checkVariable, "1")
	seed := rand.Uint64()
	if *planSeed != 0 {
		seed = *planSeed
	}
	all := []ordeal{
		{Config: localworld.Config{Ranks: 3, Replicas: 1}, threads: 1},
		{Config: localworld.Config{Ranks: 2, Replicas: 1, Sockets: true}, threads: 4},
		{Config: localworld.Config{Ranks: 2, Replicas: 2}, threads: 1},
	}
	o := all[seed%uint64(len(all))]
	if err := o.run(seed); err != nil {
		t.Fatalf("-seed %d, %v: %v", seed, o, err)
	}
}

const planSteps = 8

// run runs the programs of seed under the conditions o.
func (o ordeal) run(seed uint64) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("hangs"))
	defer cancel()
	random := rand.New(rand.NewPCG(seed, 2))
	if o.breaks {
		var mu sync.Mutex
		o.Wrap = func(_, _ view.Process, s channel.Sender) channel.Sender {
			mu.Lock()
			defer mu.Unlock()
			return newFragile(s, random)
		}
	}
	job := localworld.New(ctx, o.Config)
	plans := make([]plan, o.threads)
	for i := range plans {
		plans[i] = drawPlan(seed+uint64(i), o.Ranks, planSteps)
	}
	dies := make(map[view.Process]int) // step at which each victim is killed
	for rank := range o.Ranks {
		if o.kills && random.IntN(3) > 0 {
			dies[view.Process{Rank: rank, Replica: random.IntN(o.Replicas)}] = random.IntN(planSteps)
		}
	}
	return runIn(job, func(w *World) error {
		self := view.Process{Rank: w.Rank(), Replica: w.Replica()}
		at, mortal := dies[self]
		return w.runPlans(plans, func(step int) {
			if mortal && step == at {
				job.Kill(self)
			}
		})
	})
}

// runPlans runs the plans at the same time, each with its own communicators.
func (w *World) runPlans(plans []plan, before func(step int)) error {
	if err := w.BufferAttach(256 << 20); err != nil {
		return err
	}
	actors := make([]*actor, len(plans))
	for i, p := range plans {
		base, err := w.Dup()
		if err != nil {
			return err
		}
		actors[i] = &actor{plan: p, base: base, rank: w.Rank(), before: before, sets: layouts(p.ranks)}
	}
	err := several(len(actors), func(i int) error {
		err := actors[i].run()
		if err != nil {
			err = fmt.Errorf("thread %d: %w", i, err)
		}
		return err
	})
	return first(err, last(w.BufferDetach()))
}

// An actor performs one rank's part of a plan.
type actor struct {
	plan
	base   *Comm
	comms  []*Comm
	rank   int // world rank
	sets   [][][]int
	before func(step int)
}

func (a *actor) run() error {
	for i := range a.sets {
		c, err := makeSet(a.base, i)
		if err != nil {
			return err
		}
		a.comms = append(a.comms, c)
	}
	for i, s := range a.steps {
		a.before(i)
		if err := a.do(i, s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// group returns the world ranks of communicator i of this rank.
func (a *actor) group(i int) []int {
	for _, g := range a.sets[i] {
		for _, r := range g {
			if r == a.rank {
				return g
			}
		}
	}
	return nil
}

// rankIn returns the rank of a world rank in communicator i.
func (a *actor) rankIn(i, world int) int {
	for r, v := range a.group(i) {
		if v == world {
			return r
		}
	}
	return -1
}

// do performs one step.
func (a *actor) do(i int, s step) error {
	if s.renew >= 0 {
		c, err := makeSet(a.base, s.renew)
		if err := first(err, a.comms[s.renew].Free()); err != nil {
			return err
		}
		a.comms[s.renew] = c
	}
	under, err := a.begin(s)
	if err != nil {
		return err
	}
	if err := a.exchange(i, s); err != nil {
		return err
	}
	for k, u := range under {
		if u.request == nil {
			continue
		}
		if _, err := u.request.Wait(); err != nil {
			return err // in a killed process, the collective may still write
		}
		if err := u.check(fmt.Sprintf("collective %d", k)); err != nil {
			return err
		}
	}
	return Barrier(a.base) // separates the wildcards of one step from the messages of the next step
}

// A running collective is a request and its expected result.
type running struct {
	result
	request *Request
}

// begin starts the nonblocking collectives of s, and performs the blocking ones.
func (a *actor) begin(s step) ([]running, error) {
	var under []running
	for _, call := range s.collectives {
		kind := collectives[call.kind]
		if call.blocking {
			x, err := kind.block(a.comms[call.comm], call.root, call.count)
			if err != nil {
				return nil, err
			}
			if err := x.check(kind.name); err != nil {
				return nil, err
			}
			continue
		}
		r, x, err := kind.begin(a.comms[call.comm], call.root, call.count)
		if err != nil {
			return nil, err
		}
		under = append(under, running{x, r})
	}
	return under, nil
}

// A posting is a receive of a step.
type posting struct {
	planMessage
	buf     []byte
	request *Request
	status  Status
}

// exchange sends and receives the messages of a step.
func (a *actor) exchange(i int, s step) error {
	postings, err := a.post(s)
	if err != nil {
		return err
	}
	if s.posted { // at all ranks, before any message is sent
		if err := Barrier(a.base); err != nil {
			return err
		}
	}
	sent, err := a.send(i, s)
	if err != nil {
		return err
	}
	for k := range postings {
		if err := a.receive(&postings[k], s.wild, k); err != nil {
			return err
		}
	}
	if _, err := Waitall(sent...); err != nil {
		return err
	}
	return a.judge(i, s, postings)
}

// post posts the receives of messages to this rank: all of them, or only the first.
func (a *actor) post(s step) ([]posting, error) {
	var postings []posting
	largest := make(map[int]int) // by communicator, because a wildcard may receive any of its messages
	for _, l := range s.messages {
		if l.to == a.rank {
			postings = append(postings, posting{planMessage: l})
			largest[l.comm] = max(largest[l.comm], l.size)
		}
	}
	for k := range postings {
		p := &postings[k]
		p.buf = make([]byte, largest[p.comm])
		if !s.posted && k >= len(postings)/2 {
			continue
		}
		source, tag := a.pattern(p.planMessage, s.wild)
		var err error
		if k%3 == 0 {
			if p.request, err = RecvInit(a.comms[p.comm], p.buf, source, tag); err == nil {
				err = p.request.Start()
			}
		} else {
			p.request, err = Irecv(a.comms[p.comm], p.buf, source, tag)
		}
		if err != nil {
			return nil, err
		}
	}
	return postings, nil
}

func (a *actor) pattern(l planMessage, wild int) (source, tag int) {
	source, tag = a.rankIn(l.comm, l.from), l.tag
	if wild == anySource || wild == anyBoth {
		source = AnySource
	}
	if wild == anyTag || wild == anyBoth {
		tag = AnyTag
	}
	return source, tag
}

func (a *actor) send(i int, s step) (sent []*Request, err error) {
	for k, l := range s.messages {
		if l.from != a.rank {
			continue
		}
		buf := make([]byte, l.size)
		content(buf, i, k)
		c, dest := a.comms[l.comm], a.rankIn(l.comm, l.to)
		if s.posted && k%2 == 0 {
			err = ways[l.way].blocking(c, buf, dest, l.tag)
		} else {
			var r *Request
			r, err = ways[l.way].send(c, buf, dest, l.tag)
			sent = append(sent, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return sent, nil
}

// receive waits for a posted receive, or receives with one of many functions.
func (a *actor) receive(p *posting, wild, k int) (err error) {
	c := a.comms[p.comm]
	source, tag := a.pattern(p.planMessage, wild)
	switch {
	case p.request != nil && k%2 == 0:
		p.status, err = p.request.Wait()
	case p.request != nil:
		_, p.status, err = Waitany(p.request)
	case k%4 == 0:
		p.status, err = Recv(c, p.buf, source, tag)
	case k%4 == 1:
		if p.status, err = Probe(c, source, tag); err == nil {
			p.status, err = Recv(c, p.buf, p.status.Source, p.status.Tag)
		}
	case k%4 == 2:
		var m *Message
		if m, p.status, err = Mprobe(c, source, tag); err == nil {
			p.status, err = Mrecv(m, p.buf)
		}
	default:
		for ok := false; !ok && err == nil; {
			p.status, ok, err = Iprobe(c, source, tag)
		}
		if err == nil {
			p.status, err = Recv(c, p.buf, p.status.Source, p.status.Tag)
		}
	}
	return err
}

// judge compares the received messages with the sent messages. Messages of one source that a receive
// could match must arrive in the order in which they were sent.
func (a *actor) judge(i int, s step, postings []posting) error {
	taken := make([]bool, len(s.messages))
	for n, p := range postings {
		k, found := 0, false
		for k = range s.messages {
			l := s.messages[k]
			found = !taken[k] && l.to == a.rank && l.comm == p.comm && a.rankIn(l.comm, l.from) == p.status.Source &&
				(l.tag == p.status.Tag || s.wild == anyTag || s.wild == anyBoth)
			if found {
				break
			}
		}
		if !found || s.messages[k].tag != p.status.Tag || s.messages[k].size != p.status.Size {
			return fmt.Errorf("receive %d of %+v got %+v", n, p.planMessage, p.status)
		}
		taken[k] = true
		want := make([]byte, p.status.Size)
		content(want, i, k)
		if !bytes.Equal(p.buf[:p.status.Size], want) {
			return fmt.Errorf("receive %d of %+v: wrong bytes", n, s.messages[k])
		}
	}
	return nil
}
