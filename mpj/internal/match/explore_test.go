package match

import (
	"fmt"
	"testing"
)

// An event is something that happens at a process.
type event struct {
	kind    eventKind
	receive spec
	message Message
	post    int // for decided
}

type eventKind int

const (
	posted eventKind = iota
	arrived
	decided // as proposed
)

func (e event) String() string {
	return [...]string{
		posted:  fmt.Sprint("post ", e.receive),
		arrived: fmt.Sprintf("arrive %v tag %d", e.message.name(), e.message.Tag),
		decided: fmt.Sprint("decide ", e.post),
	}[e.kind]
}

func (p *process) do(e event) {
	switch e.kind {
	case posted:
		p.post(e.receive)
	case arrived:
		p.arrive(e.message)
	case decided:
		p.decide(e.post, p.proposals[e.post])
	}
	p.update()
}

// events returns the events that may happen at p next, if at most the given number of receives is posted and of messages
// arrives.
func (p *process) events(most int) (all []event) {
	if len(p.posts) < most {
		for _, source := range []int{AnySource, 0, 1} {
			for _, tag := range []int32{AnyTag, 0} {
				all = append(all, event{kind: posted, receive: spec{source, tag}})
			}
		}
	}
	if len(p.arrived) < most {
		for source := range 2 {
			for tag := range int32(2) {
				m := Message{Source: source, Tag: tag, Seq: uint64(p.count(source) + 1)}
				all = append(all, event{kind: arrived, message: m})
			}
		}
	}
	for i, n := range p.proposals {
		if n != none && p.outcome[i] == none {
			all = append(all, event{kind: decided, post: i})
		}
	}
	return all
}

// state describes everything on which the further behaviour of p depends: the numbers of events that are left, the
// posted receives, and the unexpected messages. A proposed receive is described by the place of its message.
func (p *process) state() string {
	b := []byte{byte(len(p.posts)), byte(len(p.arrived))}
	for r := range p.Posts() {
		place := -1
		if r.is(proposed) {
			place = p.index(r.Wild.message)
		}
		b = append(b, byte(r.Source), byte(r.Tag), byte(place))
	}
	b = append(b, ':')
	for m := range p.Messages() {
		b = append(b, byte(m.Source), byte(m.Tag))
	}
	return string(b)
}

// TestEveryOrder explores every order of up to four posts and four messages of two sources, without agreement and at
// the decider of a rank, where an outcome may follow its proposal after any other events. It explores each state once.
func TestEveryOrder(t *testing.T) {
	most := 4
	if testing.Short() {
		most = 3
	}
	for name, agrees := range map[string]bool{"without agreement": false, "decider": true} {
		t.Run(name, func(t *testing.T) {
			explore(t, func() *process { return newProcess(agrees, true) }, most)
		})
	}
}

// explore makes at most the given number of posts and of arrivals happen at the process that start returns, with all
// outcomes of its proposals, in every order.
func explore(t *testing.T, start func() *process, most int) {
	seen := make(map[string]bool)
	paths := [][]event{nil}
	replay := func(path []event) *process {
		p := start()
		for _, e := range path {
			p.do(e)
		}
		return p
	}
	for len(paths) > 0 {
		path := paths[len(paths)-1]
		paths = paths[:len(paths)-1]
		for _, e := range replay(path).events(most) {
			next := append(path[:len(path):len(path)], e)
			p := replay(next)
			if err := p.check(); err != nil {
				t.Fatalf("%v, after %v", err, next)
			}
			if s := p.state(); !seen[s] {
				seen[s] = true
				paths = append(paths, next)
			}
		}
	}
	t.Logf("%d states", len(seen))
}
