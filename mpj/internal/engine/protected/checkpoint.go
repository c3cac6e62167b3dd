package protected

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
)

// checkpointing makes checkpoints of the program, or resumes the program from one. Its calls release
// the engine's mutex while the program saves or restores its state. Of the engine, it needs all that a
// snapshot contains: the mailboxes, the counts of steps and bytes, and the outcomes and clock of the
// program.
type checkpointing struct {
	p        *transport
	state    *messagelog.Draft // received part of the checkpoint that this process resumes from
	resuming *engine.Waiter    // waiter of Checkpoint while it waits for an arriving checkpoint
}

// run implements Checkpoint. The engine's mutex is not held.
func (c *checkpointing) run(program engine.Checkpoint) error {
	p := c.p
	p.loop.Lock()
	if p.loop.Err() != nil {
		defer p.loop.Unlock()
		return p.loop.Err()
	}
	log := p.rejoin.log
	if log == nil && !p.protocol.Joining() {
		p.loop.Unlock()
		return nil
	}
	arrived, err := c.awaitArriving()
	if err != nil {
		p.loop.Unlock()
		return err
	}
	if arrived {
		return c.resume(program)
	}
	var d *messagelog.Draft
	if log != nil {
		d = log.BeginCheckpoint(*p.loop.View(), p.protocol.Joining())
	}
	p.loop.Unlock()
	if d == nil {
		return nil
	}
	defer d.Discard()
	return c.save(program, d)
}

// awaitArriving waits until no checkpoint is arriving, and reports whether one has arrived.
func (c *checkpointing) awaitArriving() (arrived bool, err error) {
	w := engine.NewWaiter()
	defer w.Put()
	c.resuming = w
	err = c.p.loop.Await(w, func() bool { return c.p.protocol.Checkpointed() != protection.Arriving })
	c.resuming = nil
	return err == nil && c.p.protocol.Checkpointed() == protection.Arrived, err
}

// save saves the state of the program in d, and commits d.
func (c *checkpointing) save(program engine.Checkpoint, d *messagelog.Draft) error {
	if err := program.Save(d); err != nil {
		return err
	}
	own, ok := program.Own()
	if !ok || !d.Finish() {
		return nil
	}
	c.p.loop.Lock()
	defer c.p.loop.Unlock()
	if c.p.loop.Err() == nil && !c.underWay() {
		c.commit(d, c.snapshot(own))
	}
	return c.p.loop.Err()
}

// underWay reports whether the program has a posted receive, a synchronous send or a pending
// decision.
func (c *checkpointing) underWay() bool {
	for _, b := range c.p.loop.Mailboxes() {
		if b.Posted() {
			return true
		}
	}
	for _, s := range c.p.windows.waiting {
		if s.sync {
			return true
		}
	}
	return len(c.p.decisions.open) > 0
}

// commit replaces the current part of the log with the state in d and snapshot s. If s has more than
// messagelog.MaxTail bytes, commit leaves the log unchanged.
func (c *checkpointing) commit(d *messagelog.Draft, s protection.Snapshot) {
	if s.Size() > messagelog.MaxTail {
		return
	}
	b := protection.AppendSnapshot(nil, &s)
	for pt, outcome := range c.p.decisions.early {
		b = protection.AppendOutcome(b, &protection.Determinant{Point: pt, Outcome: outcome})
	}
	if write := c.p.rejoin.log.Commit(d, b, *c.p.loop.View()); write != nil {
		c.p.loop.Go(write) // until the file has caught up
	}
}

// ownSize returns the length in bytes of the engine's part of a snapshot. That part contains the
// program's time, its steps, and for each rank the tallies of messages sent to and received from
// it.
func (c *checkpointing) ownSize() int { return talliesAt + 2*tallySize*len(c.p.windows.byRank) }

const talliesAt = 16

// snapshot returns the data that a process needs, in addition to the program's state, to resume
// from here.
func (c *checkpointing) snapshot(own []byte) protection.Snapshot {
	s := c.p.protocol.Snapshot()
	for context, b := range c.p.loop.Mailboxes() {
		if b.Points > 0 {
			s.Points = append(s.Points, protection.Position{Context: context, Seq: b.Points})
		}
		for m := range b.Messages() {
			s.Unreceived = append(s.Unreceived, unreceivedMessage(m, c.p.loop.Self().Rank))
		}
	}
	s.Own = binary.LittleEndian.AppendUint64(nil, math.Float64bits(c.p.decisions.time))
	s.Own = binary.LittleEndian.AppendUint64(s.Own, c.p.leading.meter.Steps())
	for _, w := range c.p.windows.byRank {
		s.Own = w.received.append(w.sent.append(s.Own))
	}
	s.Own = append(s.Own, own...)
	return s
}

// takeState appends b, a piece of the state that this process will resume from, to its draft.
func (c *checkpointing) takeState(b []byte) {
	if log := c.p.rejoin.log; c.state == nil && log != nil {
		c.state = log.NewDraft()
	}
	if c.state == nil {
		c.p.loop.Fail(errors.New("cannot store the checkpoint to resume from"))
		return
	}
	if c.state.Write(b); c.state.Err() != nil {
		c.p.loop.Fail(c.state.Err())
	}
}

// resume resumes from the checkpoint that has arrived. The engine's mutex is held, and released.
func (c *checkpointing) resume(program engine.Checkpoint) error {
	p := c.p
	s, out := p.protocol.Resume()
	c.takeState(nil)
	d := c.state
	switch {
	case p.loop.Err() != nil:
	case out.Lost != "":
		p.loop.Fail(errors.New(out.Lost))
	case len(s.Own) < c.ownSize():
		p.loop.Fail(errors.New("malformed checkpoint: the engine's part is truncated"))
	case !d.Finish():
		p.loop.Fail(d.Err())
	}
	if p.loop.Err() != nil {
		defer p.loop.Unlock()
		return p.loop.Err()
	}
	c.goTo(&s)
	p.rejoin.log.EndPrologue()
	c.commit(d, s)
	p.rejoin.countReplayed(out.Deliver)
	p.apply(out)
	p.loop.Relieve()
	p.loop.Arm()
	p.loop.Unlock()
	defer d.Discard()
	if err := program.TakeOwn(s.Own[c.ownSize():]); err != nil {
		return err
	}
	return program.Restore(d.Reader())
}

// goTo sets the mailboxes, steps, windows and clock to their state in the snapshot.
func (c *checkpointing) goTo(s *protection.Snapshot) {
	for _, b := range c.p.loop.Mailboxes() {
		b.Clear()
	}
	for i := range s.Unreceived {
		m := arrivedMessage(&s.Unreceived[i])
		c.p.loop.Mailbox(m.Context).Keep(m)
	}
	for _, at := range s.Points {
		c.p.loop.Mailbox(at.Context).Points = at.Seq
	}
	c.p.leading.meter.Resume(binary.LittleEndian.Uint64(s.Own[8:]), c.p.loop.Now())
	c.p.decisions.resume(math.Float64frombits(binary.LittleEndian.Uint64(s.Own)))
	windows := c.p.windows.byRank
	for rank := range windows {
		w := &windows[rank]
		b := s.Own[talliesAt+2*tallySize*rank:]
		w.sent, w.received = readTally(b), readTally(b[tallySize:])
	}
	self := c.p.loop.Self()
	own := &windows[self.Rank]
	own.record(self.Replica, own.received)
	c.p.notices.resume()
}
