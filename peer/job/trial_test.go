package job

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A lie describes how the one liar of a job of two ranks treats the first message from rank 0 to
// each of the first two replicas of rank 1. Honest processes produce the message honest.
//
//	0.0 master -- sent[j] --> 1.j -- told[k][j] --> 0.k -- report --> submitter
type lie struct {
	liar view.Process
	sent [2]uint64    // by receiver: the message that the master sends
	told [3][2]uint64 // by source and receiver: the message that the receiver claims to have received
	says [2]saying    // by receiver: the report of the liar, if it is a source
}

// A saying is the report of a source: the message that the source has produced, and the one that the
// receiver has received. The zero value stands for no report.
type saying struct{ produced, received uint64 }

// honest is the message that honest processes produce.
const honest = 5

// lies returns all behaviours of one lying process in a job with r replicas per rank. A master may
// send a wrong message to some receivers, a source may report any message, and a receiver may lie to
// some sources.
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
				continue // only the master sends messages
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

// A trial is a state of the submitter of a job with a lie.
type trial struct {
	lie
	w       State
	said    [3][2]bool // reports sent, by source and receiver
	agreed  []view.Change
	crashes int
	crashed view.Process
	result  *Result
}

var noProcess = proc(-1, 0)

func (l lie) try(t *testing.T, r, crashes int) trial {
	return trial{lie: l, w: *running(t, 2, r).State, crashes: crashes, crashed: noProcess}
}

func (c trial) clone() trial {
	c.w.procs = slices.Clone(c.w.procs)
	disputes := make([]*dispute, len(c.w.disputes))
	for i, d := range c.w.disputes {
		copied := *d
		copied.reports = maps.Clone(d.reports)
		disputes[i] = &copied
	}
	c.w.disputes, c.agreed = disputes, slices.Clone(c.agreed)
	return c
}

// report returns the report of source k about receiver j. can means that k may send this report, must
// that k sends it eventually.
func (c *trial) report(k, j int) (s saying, can, must bool) {
	if c.said[k][j] || !c.w.has(proc(0, k)) {
		return s, false, false
	}
	if c.liar == proc(0, k) {
		return c.says[j], c.says[j] != saying{}, false
	}
	for other := range c.w.r {
		differs := c.told[other][j] != honest && c.liar != proc(0, other)
		must = must || differs && (other == k || c.w.r >= Quorum && c.w.has(proc(0, other)))
	}
	// The liar asks honest sources, too. A source still has the message: otherwise it could not
	// report what it has produced (package replication).
	return saying{honest, c.told[k][j]}, must || c.liar.Rank == 0 && c.w.r >= Quorum, must
}

// follow records the requested changes, and checks that they fail no honest process.
func (c *trial) follow(s Effects) error {
	c.agreed = append(c.agreed, s.Propose...)
	if s.Result != nil {
		c.result = s.Result
	}
	for _, ch := range s.Propose {
		p := ch.Process
		spoiled := p.Rank == 1 && p.Replica < 2 && c.sent[p.Replica] != honest
		if ch.To == view.Failed && p != c.liar && p != c.crashed && !spoiled {
			return fmt.Errorf("honest process %v is voted out", p)
		}
	}
	return nil
}

// afterwards explores all states that can follow from c, and returns their number.
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
	then := func(next trial, s Effects) error {
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
		if err := then(next, next.w.Apply(Committed{Change: ch})); err != nil {
			return states, fmt.Errorf("%v is agreed on; %w", ch, err)
		}
	}
	for k := range c.w.r {
		for j := range 2 {
			s, can, must := c.report(k, j)
			if !can {
				continue
			}
			pressing = pressing || must
			next := c.clone()
			next.said[k][j] = true
			d := protection.Divergence{Receiver: proc(1, j), Seq: 1, Produced: s.produced, Received: s.received}
			if err := then(next, next.w.Apply(Diverged{Process: proc(0, k), Divergence: d, Text: "evidence"})); err != nil {
				return states, fmt.Errorf("0.%d reports %v about 1.%d; %w", k, s, j, err)
			}
		}
	}
	for _, p := range c.w.view.Processes() {
		if c.crashes == 0 || !c.w.has(p) || p == c.liar {
			continue
		}
		next := c.clone()
		next.crashes, next.crashed = 0, p
		if err := then(next, next.w.Apply(Lost{Processes: []view.Process{p}, Why: "is lost"})); err != nil {
			return states, fmt.Errorf("%v crashes; %w", p, err)
		}
	}
	if pressing {
		return states, nil
	}
	return states, c.finish()
}

// finish lets all remaining processes end successfully.
func (c trial) finish() error {
	c = c.clone()
	w := immediate{&c.w}
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

// unheard reports whether the liar has reported a message of a receiver that not all other sources
// have reported. That report cannot be judged, and the job ends without an answer.
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

// judge checks that the user gets no answer that depends on a lie, if an honest witness is left.
// With three replicas, the reports of a liar must not keep the user from the right answer.
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
		return fmt.Errorf("the job has no result")
	case c.result.Status == StatusOK && spoiled && witness:
		return fmt.Errorf("the user gets an answer that depends on a lie")
	case c.result.Status != StatusOK && c.w.r >= Quorum && c.sent == [2]uint64{honest, honest} && c.crashed == noProcess && !c.unheard():
		return fmt.Errorf("the job ends with %+v", *c.result)
	}
	return nil
}

// TestEveryLie tries every behaviour of one lying process, every order of the honest reports, and a
// crash of one process. No answer depends on a lie, and no honest process is voted out. With three
// replicas and no crash, the job continues unless other processes have computed with a message of
// the liar.
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
