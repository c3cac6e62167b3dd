package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A name is the content of an outcome: the name of a message.
type name struct {
	source int
	seq    uint64
}

// A replica is a mailbox and the record of its matches.
type replica struct {
	mailbox
	decider  bool
	requests []*Request
	matched  map[int]name // completed matches, by post
	proposed []int        // proposed posts, in order
}

func newReplica(decider bool) *replica {
	return &replica{decider: decider, matched: make(map[int]name)}
}

func (r *replica) match1(p *Request, m message) {
	i := int(p.point.Index)
	if p.proposed {
		r.proposed = append(r.proposed, i)
		return
	}
	r.matched[i] = name{m.Source, m.Seq}
}

func (r *replica) doArrive(m protection.Message) {
	if p, m, ok := r.arrive(m, r.decider); ok {
		r.match1(p, m)
	}
}

func (r *replica) doPost(spec Request) {
	p := &spec
	p.point.Index = uint64(len(r.requests))
	p.wildcard = p.source == AnySource
	r.requests = append(r.requests, p)
	if m, ok := r.post(p, r.decider); ok {
		r.match1(p, m)
	}
}

// doDecide gives post i its outcome. A post that is not posted yet becomes exact from the start, as
// in the engine.
func (r *replica) doDecide(i int, n name) {
	if r.decide(r.requests[i], n.source, n.seq) {
		r.matched[i] = n
	}
	for {
		p, m, ok := r.match(r.decider, func(*Request) bool { return true })
		if !ok {
			return
		}
		r.match1(p, m)
	}
}

// A script holds a job's messages to one rank and the receives of that rank.
type script struct {
	random   *rand.Rand
	messages [][]protection.Message // by source, in order
	posts    []Request
}

func newScript(seed uint64) *script {
	s := &script{random: rand.New(rand.NewPCG(seed, 0))}
	for source := range 1 + s.random.IntN(3) {
		var ms []protection.Message
		for seq := range s.random.IntN(6) {
			ms = append(ms, protection.Message{Source: source, Tag: int32(s.random.IntN(2)), Seq: uint64(seq + 1)})
		}
		s.messages = append(s.messages, ms)
	}
	for range s.random.IntN(10) {
		p := Request{source: s.random.IntN(len(s.messages)+2) - 1, tag: int32(s.random.IntN(3) - 1)}
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
				known[i] = name{r.requests[i].bound.Source, r.requests[i].bound.Seq}
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
		for i, p := range r.posts {
			if _, ok := r.choice(i, true); ok || p.proposed {
				t.Fatalf("seed %d: post %d still waits", seed, p.point.Index)
			}
		}
	}
}

// doDecideNothing makes the matches that have become possible.
func (r *replica) doDecideNothing() {
	for {
		p, m, ok := r.match(r.decider, func(*Request) bool { return true })
		if !ok {
			return
		}
		r.match1(p, m)
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
	b := new(mailbox)
	for seq := range uint64(3) {
		b.arrive(protection.Message{Source: 1, Tag: int32(seq % 2), Seq: seq + 1}, true)
	}
	for _, want := range []struct {
		tag int32
		seq uint64
	}{{1, 2}, {AnyTag, 1}, {AnyTag, 3}} {
		if m, ok := b.post(&Request{source: 1, tag: want.tag}, true); !ok || m.Seq != want.seq {
			t.Errorf("tag %d: got message %d, %v; want %d", want.tag, m.Seq, ok, want.seq)
		}
	}
}

// TestKnownOutcomeWins checks that an earlier master's outcome prevails over a proposal, and that
// the proposed message returns to its place.
func TestKnownOutcomeWins(t *testing.T) {
	b := new(mailbox)
	b.arrive(protection.Message{Source: 1, Seq: 1}, true)
	b.arrive(protection.Message{Source: 2, Seq: 1}, true)
	r := &Request{source: AnySource, tag: AnyTag, wildcard: true}
	if m, ok := b.post(r, true); !ok || m.Source != 1 || !r.proposed {
		t.Fatalf("post returned %+v, %v, want the message of rank 1", m, ok)
	}
	if b.decide(r, 2, 1) {
		t.Fatal("the proposal was treated as the outcome")
	}
	if got, m, ok := b.match(true, func(*Request) bool { return true }); !ok || got != r || m.Source != 2 {
		t.Errorf("got %+v, %v; want the message of rank 2", m, ok)
	}
	if m, ok := b.post(&Request{source: AnySource, tag: AnyTag}, true); !ok || m.Source != 1 {
		t.Errorf("got %+v, %v; want the message of rank 1", m, ok)
	}
}
