package replication

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// checkpoints is a process's record of its program's checkpoints, as in the engine.
type checkpoints struct {
	prologue []byte       // log up to the first checkpoint; nil before that checkpoint
	state    []byte       // of the program, as read from the log
	made     int          // number of checkpoints made
	readers  map[int]bool // replicas that have not read the log to its end
	began    map[int]int  // value of made when they started to read
	behind   uint64       // number of points before the checkpoint from which the process has resumed
}

// reads records that a replica reads the log, and reports whether the log is still the same as at the replica's
// first read.
func (c *checkpoints) reads(r protection.LogRequest) bool {
	k := r.To.Replica
	if c.readers == nil {
		c.readers, c.began = make(map[int]bool), make(map[int]int)
	}
	if _, again := c.began[k]; r.Position == 0 && !again {
		c.readers[k], c.began[k] = true, c.made
	}
	return c.began[k] == c.made
}

// checkpoint carries out the program's call: it resumes from a received checkpoint, or makes one.
func (p *process) checkpoint() error {
	switch p.Checkpointed() {
	case protection.Arriving:
		return nil
	case protection.Arrived:
		s, out := p.Resume()
		if out.Lost == "" {
			p.restore(s)
			p.record(s)
		}
		return p.host.carryOut(p, out)
	}
	p.pc++
	if p.prologue == nil {
		p.prologue = slices.Clone(p.messageLog[1:])
	}
	maps.DeleteFunc(p.readers, func(k int, _ bool) bool { return !p.v.Live(view.Process{Rank: p.id.Rank, Replica: k}) })
	if p.Joining() || len(p.readers) > 0 {
		return nil
	}
	s := p.Snapshot()
	s.Unreceived = slices.Clone(p.arrived)
	s.Points = p.passed()
	p.state = p.save()
	p.record(s)
	return nil
}

// passed returns, per context, the last point that the program has reached.
func (p *process) passed() (last []protection.Position) {
	for _, context := range []uint32{named, wild} {
		at, ok := protection.Position{Context: context}, false
		for _, o := range p.script[:p.pc] {
			if pt := o.point(); o.points() && pt.Context == context {
				at.Seq, ok = max(at.Seq, pt.Index), true
			}
		}
		if ok {
			last = append(last, at)
		}
	}
	return last
}

// save encodes the state of the program.
func (p *process) save() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(p.pc))
	for _, m := range p.log {
		b = binary.LittleEndian.AppendUint64(b, uint64(m))
	}
	return b
}

// record makes the log begin with the checkpoint that consists of p.state and s.
func (p *process) record(s protection.Snapshot) {
	p.made++
	if p.prologue == nil { // first call of a process that resumes from a checkpoint
		p.prologue = slices.Clone(p.messageLog[1:])
	}
	p.messageLog = append([]byte{byte(protection.RecordResumed)}, p.prologue...)
	p.messageLog = append(protection.AppendState(p.messageLog, uint64(len(p.state))), p.state...)
	p.messageLog = protection.AppendSnapshot(p.messageLog, &s)
	for _, o := range p.script[p.pc:] { // shown, but not reached
		if outcome, ok := p.decided[o.index]; ok && o.points() {
			p.messageLog = protection.AppendOutcome(p.messageLog, &protection.Determinant{Point: o.point(), Outcome: outcome})
		}
	}
	p.state = nil
}

// restore restores the state of the program and the other contents of a checkpoint.
func (p *process) restore(s protection.Snapshot) {
	b := p.state
	p.pc, p.log, p.seen = int(binary.LittleEndian.Uint64(b)), nil, 0
	for b = b[8:]; len(b) > 0; b = b[8:] {
		p.seen = memory(binary.LittleEndian.Uint64(b))
		p.log = append(p.log, p.seen)
	}
	p.arrived = slices.Clone(s.Unreceived)
	for _, at := range s.Received {
		p.last[stream{at.Context, at.Rank}] = at.Seq
	}
	for _, at := range s.Sent {
		if at.Rank == p.id.Rank {
			p.last[stream{at.Context, at.Rank}] = at.Seq
		}
	}
	for _, at := range p.passed() {
		p.behind = max(p.behind, at.Seq+1)
	}
	maps.DeleteFunc(p.decided, func(i uint64, _ []byte) bool { return i < p.behind })
}

func TestAddUpToMergesSpans(t *testing.T) {
	for _, c := range []struct {
		spans []span
		upTo  uint64
		want  []span
	}{
		{nil, 3, []span{{0, 3}}},
		{[]span{{1, 2}}, 3, []span{{0, 3}}},
		{[]span{{1, 2}, {4, 6}}, 3, []span{{0, 6}}},
		{[]span{{1, 2}, {5, 6}}, 3, []span{{0, 3}, {5, 6}}},
		{[]span{{1, 9}}, 3, []span{{0, 9}}},
		{[]span{{1, 1}, {3, 3}, {5, 5}}, 1<<64 - 1, []span{{0, 1<<64 - 1}}},
	} {
		s := indexSet{spans: slices.Clone(c.spans)}
		if s.addUpTo(c.upTo); !slices.Equal(s.spans, c.want) {
			t.Errorf("%v up to %d: %v, want %v", c.spans, c.upTo, s.spans, c.want)
		}
	}
}
