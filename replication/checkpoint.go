package replication

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A resumption is the state of a new replica that receives the checkpoint in its rank's message log.
//
//	prologue --> state --> snapshot --- whole ---> arrived --- Resume ---> the rest of the log
type resumption struct {
	begun    bool   // the state has begun
	left     uint64 // bytes of the state that have not arrived
	snapshot protection.Snapshot
	arrived  bool // the checkpoint is complete; no further records are processed before Resume
	last     bool // the end of the message log has arrived
	resumed  bool
}

// Snapshot implements protection.Protocol.
func (p *Protocol) Snapshot() protection.Snapshot {
	var s protection.Snapshot
	for _, b := range p.outbox.all {
		if b.seq > 0 {
			s.Sent = append(s.Sent, protection.Position{Context: b.context, Rank: b.dest, Seq: b.forgotten()})
		}
	}
	for _, k := range inOrder(p.outbox.all) {
		s.Kept = append(s.Kept, k.m)
	}
	for _, a := range p.inbox.all {
		if a.next > 1 {
			s.Received = append(s.Received, protection.Position{Context: a.context, Rank: a.source, Seq: a.next - 1})
		}
	}
	return s
}

// Checkpointed implements protection.Protocol.
func (p *Protocol) Checkpointed() protection.Checkpointed {
	switch j := p.joining; {
	case !p.lacksLog:
	case j.beginning == 0, j.beginning == protection.RecordResumed && !j.resumption.arrived && !j.resumption.resumed:
		return protection.Arriving
	case j.resumption.arrived:
		return protection.Arrived
	}
	return protection.NoCheckpoint
}

// otherCheckpoint is the reason why a new replica is lost if its donor changes and one of the two message
// logs has a checkpoint. The other log may have none or a different one, and the program's actions cannot
// be undone.
const otherCheckpoint = "the replica that sent its message log has failed or is no longer master, and the checkpoint of another replica may differ"

// replayBeginning processes the first record of a message log.
func (p *Protocol) replayBeginning(kind protection.RecordKind) error {
	j := p.joining
	switch {
	case kind != protection.RecordStart && kind != protection.RecordResumed:
		return fmt.Errorf("message log begins with a record of kind %q", kind)
	case j.beginning == protection.RecordStart && kind == protection.RecordResumed:
		p.out.Lost = otherCheckpoint
	}
	j.beginning = kind
	return nil
}

// replayState passes on the available part of the program's state and returns the bytes after it.
func (p *Protocol) replayState(b []byte) []byte {
	c := &p.joining.resumption
	n := min(c.left, uint64(len(b)))
	c.left -= n
	p.out.State = b[:n:n]
	return b[n:]
}

// replayCheckpoint processes a record of the checkpoint.
func (p *Protocol) replayCheckpoint(r protection.Record) error {
	c := &p.joining.resumption
	switch {
	case r.Kind == protection.RecordState:
		if p.joining.beginning != protection.RecordResumed || c.begun || c.resumed {
			return errors.New("unexpected checkpoint")
		}
		c.begun, c.left = true, r.Length
		return nil
	case !c.begun || c.resumed:
		return fmt.Errorf("record of kind %q outside of a checkpoint", r.Kind)
	case r.Kind == protection.RecordEnd:
		c.arrived = true
		return nil
	}
	return c.snapshot.Add(r)
}

// within reports whether the checkpoint has begun and is not complete.
func (c *resumption) within() bool { return c.begun && !c.arrived && !c.resumed }

// Resume implements protection.Protocol. The process takes over the state of the snapshot's creator. The creator
// has done everything that this process has done up to its program's first checkpoint.
func (p *Protocol) Resume() (protection.Snapshot, protection.Output) {
	p.reset()
	if !p.active() || p.Checkpointed() != protection.Arrived {
		return protection.Snapshot{}, p.out
	}
	c := &p.joining.resumption
	s, last := c.snapshot, c.last
	p.resumed = true
	err := p.restoreSnapshot(&s)
	if *c = (resumption{begun: true, resumed: true}); err == nil {
		err = p.replayRest(last)
	}
	if err != nil {
		p.out.Lost = fmt.Sprintf("checkpoint of %v: %v", p.joining.donor, err)
	}
	return s, p.out
}

// replayRest processes the records after the checkpoint.
func (p *Protocol) replayRest(last bool) error {
	if err := p.replay(p.joining.rest); err != nil {
		return err
	}
	if last {
		return p.endLog()
	}
	p.requestPiece()
	return nil
}

func (p *Protocol) restoreSnapshot(s *protection.Snapshot) error {
	for _, at := range s.Sent {
		if at.Rank >= p.v.N {
			return fmt.Errorf("message to unknown rank %d", at.Rank)
		}
		b := p.outbox.to(at.Context, at.Rank)
		p.outbox.skip(b, at.Seq)
		p.audit.skip(b, at.Seq)
	}
	for _, m := range s.Kept {
		if err := p.restoreKept(m); err != nil {
			return err
		}
	}
	for _, at := range s.Received {
		if at.Rank >= p.v.N || at.Rank == p.self.Rank {
			return fmt.Errorf("message from invalid rank %d", at.Rank)
		}
		a, err := p.inbox.from(at.Context, at.Rank)
		if err != nil {
			return err
		}
		if at.Seq+1 < a.next {
			return fmt.Errorf("checkpoint ends at message %d from rank %d, but message %d has already arrived", at.Seq, at.Rank, a.next-1)
		}
		a.next = at.Seq + 1
	}
	for _, m := range s.Unreceived {
		if m.Source >= p.v.N || m.Seq == 0 || m.Seq > p.delivered(m.Context, m.Source) {
			return fmt.Errorf("unmatched message %d from rank %d, which has sent only %d", m.Seq, m.Source, p.delivered(m.Context, m.Source))
		}
	}
	for _, at := range s.Points {
		p.agreement.decisions.markSeen(at.Context, at.Seq)
	}
	return nil
}

// delivered returns the number of messages from a rank that have been delivered.
func (p *Protocol) delivered(context uint32, source int) uint64 {
	if source == p.self.Rank {
		return p.Sent(context, source)
	}
	return p.Received(context, source)
}

// restoreKept keeps a message that a destination may lack, as Send did in the process that made the
// checkpoint.
func (p *Protocol) restoreKept(m protection.Message) error {
	if m.Dest >= p.v.N || m.Dest == p.self.Rank {
		return fmt.Errorf("kept message to invalid rank %d", m.Dest)
	}
	b := p.outbox.to(m.Context, m.Dest)
	if m.Seq != b.seq+1 {
		return fmt.Errorf("kept message %d to rank %d follows message %d", m.Seq, m.Dest, b.seq)
	}
	b.seq++
	p.audit.produced(b, &m)
	p.outbox.keep(b, m)
	return nil
}
