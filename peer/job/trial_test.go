package job

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// A lie is what the one liar of a job of two ranks does about the first message from
// rank 0 to each of the first two replicas of rank 1. Honest ones produce true.
//
//	0.0 master -- sent[j] --> 1.j -- told[k][j] --> 0.k -- word --> submitter
type lie struct {
	liar view.Process
	sent [2]uint64    // by receiver: what the master sends
	told [3][2]uint64 // by source and receiver: what it says it has got
	says [2]saying    // by receiver: what the liar, if it is a source, says of it
}

// A saying is what a source says it has produced and the receiver has got; zero: nothing.
type saying struct{ produced, received uint64 }

// honest is what is produced by who does not lie.
const honest = 5

// lies yields all that one process of a job can do: a master that sends what it should
// not to some, a source that says what it likes, a receiver that says so to some.
func lies(r int) (all []lie) {
	straight := lie{sent: [2]uint64{honest, honest}}
	hear := func(l lie) lie {
		for k := range l.told {
			l.told[k] = l.sent
		}
		return l
	}
	for k := range r {
		l := straight
		l.liar = proc(0, k)
		for _, sent := range [][2]uint64{{honest, honest}, {7, honest}, {honest, 7}, {7, 7}} {
			if l.sent = sent; k > 0 && sent != straight.sent {
				continue // it sends nothing
			}
			words := []saying{{}, {7, honest}, {7, 7}, {honest, 9}, {honest, 7}, {8, 9}, {honest, honest}}
			for _, l.says[0] = range words {
				for _, l.says[1] = range words {
					all = append(all, hear(l))
				}
			}
		}
	}
	for to := range 1 << r {
		l := hear(straight)
		l.liar = proc(1, 0)
		for k := range r {
			if to&(1<<k) != 0 {
				l.told[k][0] = 9
			}
		}
		all = append(all, l)
	}
	return all
}

// A trial is how far the submitter has come with a lie.
type trial struct {
	lie
	w       watch
	said    [3][2]bool // by source and receiver
	agreed  []viewgroup.Change
	crashes int
	crashed view.Process
	result  *Result
}

var nobody = proc(-1, 0)

func (l lie) try(t *testing.T, r, crashes int) trial {
	return trial{lie: l, w: *running(t, 2, r).watch, crashes: crashes, crashed: nobody}
}

func (c trial) clone() trial {
	c.w.procs = slices.Clone(c.w.procs)
	disputes := make([]*dispute, len(c.w.disputes))
	for i, d := range c.w.disputes {
		copied := *d
		copied.words = maps.Clone(d.words)
		disputes[i] = &copied
	}
	c.w.disputes, c.agreed = disputes, slices.Clone(c.agreed)
	return c
}

// word is what source k says of receiver j, if it does; must says that it will.
func (c *trial) word(k, j int) (s saying, can, must bool) {
	if c.said[k][j] || !c.w.has(proc(0, k)) {
		return s, false, false
	}
	if c.liar == proc(0, k) {
		return c.says[j], c.says[j] != saying{}, false
	}
	for other := range c.w.r {
		differs := c.told[other][j] != honest && c.liar != proc(0, other)
		must = must || differs && (other == k || c.w.r >= quorum && c.w.has(proc(0, other)))
	}
	// It is asked by the liar too. It keeps the message still: else it could not say what it
	// has produced (package replication).
	return saying{honest, c.told[k][j]}, must || c.liar.Rank == 0 && c.w.r >= quorum, must
}

// follow takes what the watch asks for.
func (c *trial) follow(s step) error {
	c.agreed = append(c.agreed, s.Propose...)
	if s.Result != nil {
		c.result = s.Result
	}
	for _, ch := range s.Propose {
		p := ch.Process
		spoiled := p.Rank == 1 && p.Replica < 2 && c.sent[p.Replica] != honest
		if ch.To == view.Failed && p != c.liar && p != c.crashed && !spoiled {
			return fmt.Errorf("%v is voted out, and does not lie", p)
		}
	}
	return nil
}

// afterwards goes through everything that can become of c, and returns how many states
// that were.
func (c trial) afterwards(met map[string]bool) (int, error) {
	key := fmt.Sprint(c.said, c.agreed, c.crashes, c.crashed, string(c.w.view.States), c.result != nil)
	if met[key] {
		return 0, nil
	}
	met[key] = true
	if c.result != nil {
		return 1, c.judge()
	}
	states, pressing := 1, false
	then := func(next trial, s step) error {
		err := next.follow(s)
		if err == nil {
			var more int
			more, err = next.afterwards(met)
			states += more
		}
		return err
	}
	for i, ch := range c.agreed {
		pressing = true
		next := c.clone()
		next.agreed = slices.Delete(next.agreed, i, i+1)
		if err := then(next, next.w.Committed(ch)); err != nil {
			return states, fmt.Errorf("%v is agreed on; %w", ch, err)
		}
	}
	for k := range c.w.r {
		for j := range 2 {
			s, can, must := c.word(k, j)
			if !can {
				continue
			}
			pressing = pressing || must
			next := c.clone()
			next.said[k][j] = true
			d := protection.Divergence{Receiver: proc(1, j), Seq: 1, Produced: s.produced, Received: s.received}
			if err := then(next, next.w.Diverged(proc(0, k), d, "evidence")); err != nil {
				return states, fmt.Errorf("0.%d says %v of 1.%d; %w", k, s, j, err)
			}
		}
	}
	for _, p := range c.w.view.Processes() {
		if c.crashes == 0 || !c.w.has(p) || p == c.liar {
			continue
		}
		next := c.clone()
		next.crashes, next.crashed = 0, p
		if err := then(next, next.w.Lost([]view.Process{p}, "is lost")); err != nil {
			return states, fmt.Errorf("%v crashes; %w", p, err)
		}
	}
	if pressing {
		return states, nil
	}
	return states, c.finish()
}

// finish lets all that are left end well.
func (c trial) finish() error {
	c = c.clone()
	w := sole{&c.w}
	for _, p := range c.w.view.Processes() {
		if s := finish(w, p); s.Result != nil {
			c.result = s.Result
		}
	}
	if err := c.judge(); err != nil {
		return fmt.Errorf("the rest end; %w", err)
	}
	return nil
}

// unheard reports whether the liar alone has said something of a receiver: it has not
// asked the others. Then nobody knows what to think of it, and the job ends without an answer.
func (c *trial) unheard() bool {
	k := c.liar.Replica
	for j, s := range c.says {
		if s.produced == s.received || !c.said[k][j] {
			continue
		}
		for other := range c.w.r {
			if !c.said[other][j] {
				return true
			}
		}
	}
	return false
}

// judge holds that nobody gets an answer that a lie is part of, if anybody is left who
// could know, and that of three replicas none can keep the user from the right one by
// what it says.
func (c *trial) judge() error {
	spoiled, witness := false, false
	for j, sent := range c.sent {
		spoiled = spoiled || sent != honest && c.w.has(proc(1, j))
	}
	for k := range c.w.r {
		witness = witness || c.w.has(proc(0, k)) && c.liar != proc(0, k)
	}
	switch {
	case c.result == nil:
		return fmt.Errorf("there is no result")
	case c.result.Status == StatusOK && spoiled && witness:
		return fmt.Errorf("the user gets an answer from who was lied to")
	case c.result.Status != StatusOK && c.w.r >= quorum && c.sent == [2]uint64{honest, honest} && c.crashed == nobody && !c.unheard():
		return fmt.Errorf("the job ends with %+v", *c.result)
	}
	return nil
}

// TestEveryLie holds, whatever one process does and in whatever order the others say
// what they have found, and one of them crashes, that no answer comes out which a lie is
// part of; that who does not lie is not voted out; and that with three replicas and nobody
// crashed, the job goes on unless others have computed with what the liar sent.
func TestEveryLie(t *testing.T) {
	for r := 2; r <= 3; r++ {
		t.Run(fmt.Sprintf("r=%d", r), func(t *testing.T) {
			t.Parallel()
			all, states, crashes := lies(r), 0, 0
			if *deep || r == 2 {
				crashes = 1
			}
			for _, l := range all {
				n, err := l.try(t, r, crashes).afterwards(make(map[string]bool))
				if err != nil {
					t.Fatalf("%+v: %v", l, err)
				}
				states += n
			}
			t.Logf("%d lies, %d states", len(all), states)
		})
	}
}
