package match

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// A replica is a Box and the record of its matches.
type replica struct {
	Box
	decider  bool
	requests []*Recv
	matched  map[int]name // completed matches, by post
	proposed []int        // proposed posts, in order
}

func newReplica(decider bool) *replica {
	return &replica{decider: decider, matched: make(map[int]name)}
}

func (r *replica) record(p *Recv, m Message, got Result) {
	switch got {
	case Proposed:
		r.proposed = append(r.proposed, p.Owner.(int))
	case Matched:
		r.matched[p.Owner.(int)] = m.name()
	}
}

func (r *replica) doArrive(m Message) { r.record(r.Arrive(m, r.decider)) }

func (r *replica) doPost(s spec) {
	p := &Recv{Source: s.source, Tag: s.tag, Owner: len(r.requests)}
	if p.Source == AnySource {
		p.Wild = new(Wild)
	}
	r.requests = append(r.requests, p)
	m, got := r.Post(p, r.decider)
	r.record(p, m, got)
}

// doDecide gives post i its outcome. A post that is not posted yet becomes exact from the start, as
// in the engine.
func (r *replica) doDecide(i int, n name) {
	if _, ok := r.Decide(r.requests[i], n.source, n.seq); ok {
		r.matched[i] = n
	}
	r.doDecideNothing()
}

// A script holds a job's messages to one rank and the receives of that rank.
type script struct {
	random   *rand.Rand
	messages [][]Message // by source, in order
	posts    []spec
}

func newScript(seed uint64) *script {
	s := &script{random: rand.New(rand.NewPCG(seed, 0))}
	for source := range 1 + s.random.IntN(3) {
		var ms []Message
		for seq := range s.random.IntN(6) {
			ms = append(ms, Message{Source: source, Tag: int32(s.random.IntN(2)), Seq: uint64(seq + 1)})
		}
		s.messages = append(s.messages, ms)
	}
	for range s.random.IntN(10) {
		p := spec{source: s.random.IntN(len(s.messages)+2) - 1, tag: int32(s.random.IntN(3) - 1)}
		if p.source == len(s.messages) {
			p.source = AnySource
		}
		s.posts = append(s.posts, p)
	}
	return s
}

// play performs all events of the script on r in a random order. Messages of each source stay in
// order, posts stay in order, and outcomes follow their posts. The outcomes at a decider are its own
// proposals, which are returned later; play adds them to known. It calls check after every step.
func (s *script) play(r *replica, known map[int]name, check func()) {
	arrived, posted := make([]int, len(s.messages)), 0
	pending := maps.Clone(known)
	for {
		var steps []func()
		for source, ms := range s.messages {
			if arrived[source] < len(ms) {
				steps = append(steps, func() { r.doArrive(ms[arrived[source]]); arrived[source]++ })
			}
		}
		if posted < len(s.posts) {
			steps = append(steps, func() { r.doPost(s.posts[posted]); posted++ })
		}
		if len(r.proposed) > 0 {
			steps = append(steps, func() {
				i := r.proposed[0]
				r.proposed = r.proposed[1:]
				known[i] = r.requests[i].Wild.message
				r.doDecide(i, known[i])
			})
		}
		for i := range len(s.posts) { // not in the random order of the map
			if n, ok := pending[i]; ok && i < posted && !r.decider {
				steps = append(steps, func() { delete(pending, i); r.doDecide(i, n) })
			}
		}
		if len(steps) == 0 {
			return
		}
		steps[s.random.IntN(len(steps))]()
		if check != nil {
			check()
		}
	}
}

// TestR4ReplicasMatchAsTheDecider checks that a replica makes the same matches as the decider,
// whatever the order of arrival.
func TestR4ReplicasMatchAsTheDecider(t *testing.T) {
	for seed := range uint64(3000) {
		s := newScript(seed)
		known := make(map[int]name)
		decider := newReplica(true)
		s.play(decider, known, nil)
		for range 3 {
			other := newReplica(false)
			s.play(other, known, nil)
			if !maps.Equal(other.matched, decider.matched) {
				t.Fatalf("seed %d: %s", seed, s.describe(decider, other))
			}
		}
	}
}

// TestR4UndecidedOutcomesAreHidden checks that the decider's program sees only results that decided
// outcomes determine: a replica with these outcomes and all messages makes the same matches.
func TestR4UndecidedOutcomesAreHidden(t *testing.T) {
	for seed := range uint64(2000) {
		s := newScript(seed)
		known := make(map[int]name)
		decider := newReplica(true)
		s.play(decider, known, func() {
			other := newReplica(false)
			for _, ms := range s.messages {
				for _, m := range ms {
					other.doArrive(m)
				}
			}
			for i := range decider.requests {
				other.doPost(s.posts[i])
				if n, ok := known[i]; ok {
					other.doDecide(i, n)
				}
			}
			for i, n := range decider.matched {
				if other.matched[i] != n {
					t.Fatalf("seed %d: the decider shows post %d, %v: %s", seed, i, n, s.describe(decider, other))
				}
			}
		})
	}
}

// TestR4TakeoverKeepsDecidedOutcomes checks that a new decider continues from any state of a
// replica. The new decider must not contradict a decision of the old one, and no message may be
// matched twice.
func TestR4TakeoverKeepsDecidedOutcomes(t *testing.T) {
	for seed := range uint64(3000) {
		s := newScript(seed)
		known := make(map[int]name)
		s.play(newReplica(true), known, nil)
		for i := range len(s.posts) { // drop the outcomes that were lost with the old decider
			if s.random.IntN(2) == 0 {
				delete(known, i)
			}
		}
		r := newReplica(false)
		s.play(r, known, nil)
		before := maps.Clone(r.matched)
		r.decider = true
		r.doDecideNothing()
		s.messages, s.posts = nil, nil
		s.play(r, known, nil)
		taken := make(map[name]int)
		for i, n := range r.matched {
			if j, twice := taken[n]; twice {
				t.Fatalf("seed %d: message %v went to posts %d and %d", seed, n, i, j)
			}
			taken[n] = i
			if b, ok := before[i]; ok && b != n {
				t.Fatalf("seed %d: post %d changed from %v to %v", seed, i, b, n)
			}
		}
		for p := range r.Posts() {
			if r.choose(p, true) >= 0 || p.is(proposed) {
				t.Fatalf("seed %d: post %d still waits", seed, p.Owner)
			}
		}
	}
}

// doDecideNothing makes the matches that have become possible.
func (r *replica) doDecideNothing() {
	for {
		p, m, got := r.Next(r.decider)
		if got == Waits {
			return
		}
		r.record(p, m, got)
	}
}

func (s *script) describe(decider, other *replica) string {
	text := ""
	for i, p := range s.posts {
		text += fmt.Sprintf("\n  post %d from %d tag %d: decider %v, replica %v", i, p.source, p.tag, decider.matched[i], other.matched[i])
	}
	return fmt.Sprintf("messages %v%s", s.messages, text)
}

func TestNamedReceivesDoNotOvertake(t *testing.T) {
	b := new(Box)
	for seq := range uint64(3) {
		b.Arrive(Message{Source: 1, Tag: int32(seq % 2), Seq: seq + 1}, true)
	}
	for _, want := range []struct {
		tag int32
		seq uint64
	}{{1, 2}, {AnyTag, 1}, {AnyTag, 3}} {
		if m, got := b.Post(&Recv{Source: 1, Tag: want.tag}, true); got != Matched || m.Seq != want.seq {
			t.Errorf("tag %d: got message %d, %v; want %d", want.tag, m.Seq, got, want.seq)
		}
	}
}

// TestKnownOutcomeWins checks that an earlier master's outcome prevails over a proposal, and that
// the proposed message returns to its place.
func TestKnownOutcomeWins(t *testing.T) {
	b := new(Box)
	b.Arrive(Message{Source: 1, Seq: 1}, true)
	b.Arrive(Message{Source: 2, Seq: 1}, true)
	r := &Recv{Source: AnySource, Tag: AnyTag, Wild: new(Wild)}
	if m, got := b.Post(r, true); got != Proposed || m.Source != 1 {
		t.Fatalf("Post returned %+v, %v, want the message of rank 1", m, got)
	}
	if _, ok := b.Decide(r, 2, 1); ok {
		t.Fatal("the proposal was treated as the outcome")
	}
	if first, m, got := b.Next(true); got != Matched || first != r || m.Source != 2 {
		t.Errorf("got %+v, %v; want the message of rank 2", m, got)
	}
	if m, got := b.Post(&Recv{Source: AnySource, Tag: AnyTag}, true); got != Matched || m.Source != 1 {
		t.Errorf("got %+v, %v; want the message of rank 1", m, got)
	}
}
