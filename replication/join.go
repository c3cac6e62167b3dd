package replication

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A joining is the state of a replica that is new in its rank until it has caught up.
//
//	new --- all have greeted ---> asking the master --- log replayed ---> log complete --- caught up --->
//
// Until its log is complete, it lacks some of what its rank has done, and accepts messages only from the
// log. From then on it can be master, however far its program is.
type joining struct {
	begun       bool
	greeted     map[view.Process]bool // processes that have this one in their view
	donor       view.Process          // the master that was asked
	asked       bool
	position    uint64 // bytes of the donor's log that have arrived
	rest        []byte // unprocessed part of these: an incomplete record, or everything after a checkpoint
	logComplete bool   // the log has been replayed to its end
	told        bool   // the first record has arrived
	// beginning is the kind of the first record; 0: none has arrived.
	beginning  protection.RecordKind
	resumption resumption
	// ahead contains the streams in which other processes had more messages of the rank than this process
	// had produced when its log was complete, with the number of their last message.
	ahead map[stream]uint64
}

// A recall is a new replica's request for a part of this process's message log.
type recall struct {
	position uint64
	answered bool
}

// NewJoining returns the protocol of a process that is new in its rank. v need not contain it yet. It
// takes part as soon as the other processes have acknowledged its rank's messages, and the master has sent
// the rank's message log.
func NewJoining(self view.Process, v view.View, secret Secret) *Protocol {
	p := New(self, v, secret)
	p.joined = true
	p.joining = &joining{greeted: make(map[view.Process]bool), ahead: make(map[stream]uint64)}
	return p
}

// join starts the joining of this process once it is in its own view, and continues it. Other new
// processes need its greeting.
func (p *Protocol) join() {
	j := p.joining
	if j == nil || !p.active() {
		return
	}
	if !j.begun {
		j.begun = true
		for _, qs := range p.live {
			for _, q := range qs {
				if q != p.self {
					p.greet(q)
				}
			}
		}
	}
	if !j.logComplete {
		p.requestLog()
	}
}

// reconcileLog repeats a request or an answer that the channel to q, of the same rank, may have lost.
func (p *Protocol) reconcileLog(q view.Process) {
	if j := p.joining; p.lacksLog() && j.asked && j.donor == q && !j.resumption.arrived {
		p.recall()
	}
	p.answerRecallAgain(q)
}

// Joining implements protection.Protocol.
func (p *Protocol) Joining() bool { return p.joining != nil }

// LogComplete implements protection.Protocol.
func (p *Protocol) LogComplete() bool { return !p.lacksLog() }

// lacksLog reports whether this process lacks some of its rank's message log.
func (p *Protocol) lacksLog() bool { return p.joining != nil && !p.joining.logComplete }

// newcomers returns the live processes of v that were not in the previous view.
func (p *Protocol) newcomers(v view.View) []view.Process {
	var new []view.Process
	for _, q := range v.Processes() {
		if q != p.self && v.Live(q) && (!p.v.Contains(q) || p.v.State(q) == view.Vacant) {
			new = append(new, q)
		}
	}
	return new
}

// admit prepares for q, which is new in the view. Messages to q's rank that this process has dropped, q
// has to get from that rank's message log.
func (o *outbox) admit(q view.Process) {
	for _, b := range o.all {
		if b.dest != q.Rank {
			continue
		}
		forgotten := b.forgotten()
		b.acked[q.Replica], b.uncompared[q.Replica] = forgotten, forgotten > 0
	}
}

// introduce tells q, which is new in the view, that this process has it in its view, and proposes to it what
// is not stable.
func (p *Protocol) introduce(q view.Process) {
	p.greet(q)
	if q.Rank != p.self.Rank || !p.leads() {
		return
	}
	for _, h := range p.decisions.inOrder() {
		p.emit(q, p.control(frame.Determinant, h.Context, h.Index, h.Outcome))
	}
}

// greet tells q that it is in this process's view, after an acknowledgement of the messages of q's rank. A
// process that was new itself also requests the messages that it lacks, once its log is complete.
func (p *Protocol) greet(q view.Process) {
	if q.Rank != p.self.Rank {
		p.acknowledgeAll(q)
	}
	f := p.control(frame.Greet, 0, 0, nil)
	f.Sync = p.joined && !p.lacksLog()
	p.emit(q, f)
}

// receiveGreet records that from has this process in its view, and sends the missing messages on request.
func (p *Protocol) receiveGreet(from view.Process, f frame.Frame) {
	if f.Sync && from.Rank != p.self.Rank && p.takeover.isMaster() {
		p.resend(from)
	}
	if p.lacksLog() {
		p.joining.greeted[from] = true
		p.join()
	}
}

// requestLog requests the master's message log, once every live process has this one in its view. From then
// on no process drops a message that this process lacks, and no outcome becomes stable without it. The
// master's log contains all that was dropped and stable before.
func (p *Protocol) requestLog() {
	j := p.joining
	master, ok := p.v.Master(p.self.Rank)
	if !ok || master == p.self {
		p.out.Lost = "no replica is left that could send its message log"
		return
	}
	for _, qs := range p.live {
		for _, q := range qs {
			if q != p.self && !j.greeted[q] {
				return
			}
		}
	}
	if j.asked && j.donor == master {
		return
	}
	if j.beginning == protection.RecordResumed {
		p.out.Lost = otherCheckpoint
		return
	}
	j.donor, j.asked, j.told, j.position, j.rest = master, true, false, 0, nil
	p.recall()
}

// recall requests the next piece of the message log.
func (p *Protocol) recall() {
	p.emit(p.joining.donor, p.control(frame.Recall, 0, p.joining.position, nil))
}

// receiveRecall answers a new replica, at once or as soon as this process decides.
func (p *Protocol) receiveRecall(from view.Process, f frame.Frame) {
	p.recalls[from.Replica] = recall{position: f.Seq}
	p.answerRecall(from)
}

// answerRecall answers q once this process decides. The first piece also waits until q has all outcomes
// that this process holds. Only then q has all outcomes that may have been seen and are not in this
// process's log.
func (p *Protocol) answerRecall(q view.Process) {
	r, ok := p.recalls[q.Replica]
	if !ok || r.answered || !p.leads() {
		return
	}
	if r.position == 0 && !p.decisions.reached(q.Replica) {
		return
	}
	r.answered = true
	p.recalls[q.Replica] = r
	p.out.Recalls = append(p.out.Recalls, protection.Recall{To: q, Position: r.position})
}

// answerRecallAgain repeats the answer to q, because the channel to it may have lost the last one.
func (p *Protocol) answerRecallAgain(q view.Process) {
	if r, ok := p.recalls[q.Replica]; ok {
		r.answered = false
		p.recalls[q.Replica] = r
		p.answerRecall(q)
	}
}

// answerRecalls answers pending requests, and drops those of processes that are no longer live.
func (p *Protocol) answerRecalls() {
	if len(p.recalls) == 0 {
		return
	}
	for k := range p.v.R {
		q := view.Process{Rank: p.self.Rank, Replica: k}
		if !p.v.Live(q) {
			delete(p.recalls, k)
		}
		p.answerRecall(q)
	}
}

// receiveLog processes a piece of the rank's message log. A piece that does not answer the last request
// is late or a duplicate.
func (p *Protocol) receiveLog(from view.Process, f frame.Frame) error {
	j := p.joining
	if !p.lacksLog() || !j.asked || from != j.donor || f.Seq != j.position || j.resumption.arrived {
		return nil
	}
	if len(f.Payload) == 0 && !f.Sync {
		p.out.Lost = fmt.Sprintf("%v does not keep the message log of rank %d", from, from.Rank)
		return nil
	}
	j.position += uint64(len(f.Payload))
	if err := p.replay(append(j.rest, f.Payload...)); err != nil {
		return err
	}
	switch {
	case p.out.Lost != "":
	case j.resumption.arrived: // Resume processes the rest
		j.resumption.last = f.Sync
	case !f.Sync:
		p.recall()
	default:
		return p.endLog()
	}
	return nil
}

// endLog processes the end of the message log.
func (p *Protocol) endLog() error {
	switch j := p.joining; {
	case len(j.rest) > 0 || j.resumption.within():
		return fmt.Errorf("message log ends within a record")
	case j.beginning != protection.RecordStart && !j.resumption.resumed:
		return fmt.Errorf("message log ends without the expected checkpoint")
	}
	p.endReplay()
	return nil
}

// replay replays the records in b, and keeps the beginning of an incomplete last one.
func (p *Protocol) replay(b []byte) error {
	j := p.joining
	for len(b) > 0 && !j.resumption.arrived && p.out.Lost == "" {
		if j.resumption.left > 0 {
			b = p.replayState(b)
			continue
		}
		r, rest, err := protection.ReadRecord(b, p.self.Rank)
		if errors.Is(err, protection.ErrCut) {
			break
		}
		if err == nil {
			err = p.replayRecord(r)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	p.joining.rest = b
	return nil
}

func (p *Protocol) replayRecord(r protection.Record) error {
	switch j := p.joining; {
	case !j.told:
		j.told = true
		return p.replayBeginning(r.Kind)
	case j.resumption.within():
		return p.replayCheckpoint(r)
	case r.Kind == protection.RecordMessage:
		return p.replayMessage(*r.Message)
	case r.Kind == protection.RecordOutcome:
		return p.replayOutcome(r.Outcome)
	}
	return p.replayCheckpoint(r)
}

// replayMessage delivers a message of the log. It has no digest: it is acknowledged by number alone, and
// not compared.
func (p *Protocol) replayMessage(m protection.Message) error {
	if m.Source >= p.v.N || m.Source == p.self.Rank {
		return fmt.Errorf("message log contains a message from invalid rank %d", m.Source)
	}
	a, err := p.inbox.from(m.Context, m.Source)
	if err != nil {
		return err
	}
	switch {
	case m.Seq == 0 || m.Seq > a.next:
		return fmt.Errorf("message log contains message %d from rank %d in context %d after message %d", m.Seq, m.Source, m.Context, a.next-1)
	case m.Seq == a.next: // otherwise an earlier donor has sent it
		a.next++
		p.out.Deliver = append(p.out.Deliver, m)
	}
	return nil
}

// replayOutcome shows an outcome of the log. If it is already here as a determinant, the master's Stable
// frame will show it.
func (p *Protocol) replayOutcome(det protection.Determinant) error {
	d := &p.decisions
	if err := d.check(det); err != nil {
		return err
	}
	if d.spans >= maxSpans {
		return fmt.Errorf("too many ranges of outcomes: %d", d.spans)
	}
	if d.record(det.Point) {
		p.out.Decided = append(p.out.Decided, det)
	}
	return nil
}

// endReplay ends the replay: this process has all that its rank knows, and accepts frames from now on.
func (p *Protocol) endReplay() {
	j := p.joining
	j.logComplete, j.rest = true, nil
	for rank, qs := range p.live {
		for _, q := range qs {
			if rank != p.self.Rank {
				p.greet(q)
			}
		}
	}
	for _, b := range p.outbox.all {
		for _, q := range p.live[b.dest] {
			if n := b.acked[q.Replica]; n > b.seq && n > j.ahead[stream{b.context, b.dest}] {
				j.ahead[stream{b.context, b.dest}] = n
			}
		}
	}
	p.catchUp()
	p.report()
}

// produced records that this process has produced another message of b.
func (p *Protocol) produced(b *backlog) {
	s := stream{b.context, b.dest}
	if n, ok := p.joining.ahead[s]; ok && b.seq >= n {
		delete(p.joining.ahead, s)
		p.catchUp()
	}
}

// catchUp ends the joining of a process whose log is complete and that has produced all messages that other
// processes had of its rank.
func (p *Protocol) catchUp() {
	if j := p.joining; j.logComplete && len(j.ahead) == 0 {
		p.joining = nil
	}
}
