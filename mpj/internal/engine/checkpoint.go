package engine

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// Checkpoint makes a checkpoint of the program. Replicas that join the rank later then need not
// replay the log between the first checkpoint and this one. If this process is itself such a replica
// and calls Checkpoint for the first time, it resumes from the last checkpoint of its rank. The
// program must have no operation in progress. If the checkpoint cannot be made, for example because
// the disk is full, the log stays as it was and Checkpoint returns nil. A non-nil error comes from
// Save, Restore, TakeOwn or the engine.
func (e *Engine) Checkpoint(c Checkpoint) error {
	w := waiters.Get().(*waiter)
	e.mu.Lock()
	defer w.put()
	if e.err != nil || e.protocol == nil || e.log == nil && !e.protocol.Joining() {
		defer e.mu.Unlock()
		return e.err
	}
	e.resuming = w
	err := e.await(w, func() bool { return e.protocol.Checkpointed() != protection.Arriving })
	e.resuming = nil
	if err != nil {
		e.mu.Unlock()
		return err
	}
	if e.protocol.Checkpointed() == protection.Arrived {
		return e.resume(c)
	}
	var d *draft
	if e.log != nil {
		d = e.log.draft(e.view, e.protocol.Joining())
	}
	e.mu.Unlock()
	if d == nil {
		return nil
	}
	defer d.discard()
	if err := c.Save(d); err != nil {
		return err
	}
	own, ok := c.Own()
	if !ok || !d.finish() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && !e.underWay() {
		e.commit(d, e.snapshot(own))
	}
	return e.err
}

// underWay reports whether the program has a posted receive, a synchronous send or a pending
// decision.
func (e *Engine) underWay() bool {
	for _, b := range e.mailboxes {
		if b.Posted() {
			return true
		}
	}
	for _, h := range e.held {
		if h.sync {
			return true
		}
	}
	return len(e.open) > 0
}

// commit replaces the current part of the log with the state in d and snapshot s. If s has more than
// logAhead bytes, commit leaves the log unchanged. e.mu is held.
func (e *Engine) commit(d *draft, s protection.Snapshot) {
	if s.Size() > logAhead {
		return
	}
	b := protection.AppendSnapshot(nil, &s)
	for pt, outcome := range e.early {
		b = protection.AppendOutcome(b, &protection.Determinant{Point: pt, Outcome: outcome})
	}
	if due := e.log.commit(d, b, e.view); due != nil {
		e.running.Go(func() { e.log.write(due) }) // until the file has caught up
	}
}

// ownSize returns the length in bytes of the engine's part of a snapshot. That part contains the
// program's time, its steps, and for each rank the tallies of messages sent to and received from
// it.
func (e *Engine) ownSize() int { return flowsAt + 2*tallySize*len(e.flows) }

const flowsAt = 16

// snapshot returns the data that a process needs, in addition to the program's state, to resume
// from here. e.mu is held.
func (e *Engine) snapshot(own []byte) protection.Snapshot {
	s := e.protocol.Snapshot()
	for context, b := range e.mailboxes {
		if b.points > 0 {
			s.Points = append(s.Points, protection.Position{Context: context, Seq: b.points})
		}
		for m := range b.Messages() {
			s.Unreceived = append(s.Unreceived, unreceivedMessage(m, e.self.Rank))
		}
	}
	s.Own = binary.LittleEndian.AppendUint64(nil, math.Float64bits(e.time))
	s.Own = binary.LittleEndian.AppendUint64(s.Own, e.pace.own.last.steps)
	for rank := range e.flows {
		s.Own = e.flows[rank].received.append(e.flows[rank].sent.append(s.Own))
	}
	s.Own = append(s.Own, own...)
	return s
}

// takeState appends b, a piece of the state that this process will resume from, to its draft.
func (e *Engine) takeState(b []byte) {
	if e.state == nil && e.log != nil {
		e.state = e.log.newDraft()
	}
	if e.state == nil {
		e.fail(errors.New("cannot store the checkpoint to resume from"))
		return
	}
	if e.state.Write(b); e.state.err != nil {
		e.fail(e.state.err)
	}
}

// resume resumes from the checkpoint that has arrived. e.mu is held, and released.
func (e *Engine) resume(c Checkpoint) error {
	s, out := e.protocol.Resume()
	e.takeState(nil)
	d := e.state
	switch {
	case e.err != nil:
	case out.Lost != "":
		e.fail(errors.New(out.Lost))
	case len(s.Own) < e.ownSize():
		e.fail(errors.New("malformed checkpoint: the engine's part is truncated"))
	case !d.finish():
		e.fail(d.err)
	}
	if e.err != nil {
		defer e.mu.Unlock()
		return e.err
	}
	e.goTo(&s)
	e.log.split()
	e.commit(d, s)
	e.countReplayed(out.Deliver)
	e.apply(out)
	e.relieve()
	e.armTick()
	e.mu.Unlock()
	defer d.discard()
	if err := c.TakeOwn(s.Own[e.ownSize():]); err != nil {
		return err
	}
	return c.Restore(d.reader())
}

// goTo sets the mailboxes, steps, flows and clock to their state in the snapshot.
func (e *Engine) goTo(s *protection.Snapshot) {
	for _, b := range e.mailboxes {
		b.Clear()
	}
	for i := range s.Unreceived {
		m := arrivedMessage(&s.Unreceived[i])
		e.mailbox(m.Context).Keep(m)
	}
	for _, at := range s.Points {
		e.mailbox(at.Context).points = at.Seq
	}
	maps.DeleteFunc(e.early, func(pt protection.Point, _ []byte) bool {
		return pt.Index <= e.mailbox(pt.Context).points
	})
	maps.DeleteFunc(e.receipts, func(name messageID, _ struct{}) bool {
		return name.seq <= e.protocol.Sent(name.context, name.rank)
	})
	e.pace.own = history{last: mark{binary.LittleEndian.Uint64(s.Own[8:]), e.clock()}}
	e.time = math.Float64frombits(binary.LittleEndian.Uint64(s.Own))
	for rank := range e.flows {
		f := &e.flows[rank]
		b := s.Own[flowsAt+2*tallySize*rank:]
		f.sent, f.received = readTally(b), readTally(b[tallySize:])
	}
	own := &e.flows[e.self.Rank]
	own.record(e.self.Replica, own.received)
	e.clockOffset = e.time - e.clock().Seconds()
	e.answerAsked()
}
