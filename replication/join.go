package replication

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A joining is what a replica that is new in its rank still waits for.
//
//	new --- all have greeted ---> asking the master --- its past is here ---> whole --- caught up --->
//
// Until it is whole it knows less than its rank has done, and takes no message but
// out of the past. From then on it can be master, however far its program is.
type joining struct {
	begun    bool
	greeted  map[view.Process]bool // have this process in their view
	donor    view.Process          // the master that was asked
	asked    bool
	position uint64 // of the donor's past: so much is here
	rest     []byte // of that, what has not been taken: the beginning of a record, or all after a checkpoint
	whole    bool
	told     bool // its first record is here
	// beginning is the first record of what has been told; 0: nothing has been.
	beginning  protection.RecordKind
	resumption resumption
	// ahead says how many messages of a stream others had of the rank when this
	// process became whole, if it had not produced them.
	ahead map[stream]uint64
}

// A recall is what a new replica wants of this process's past.
type recall struct {
	position uint64
	answered bool
}

// NewJoining returns the protocol of a process that is new in its rank. v need not
// have it yet. It takes part as soon as the others have told it what they have of
// its rank's messages, and the master what has reached the rank so far.
func NewJoining(self view.Process, v view.View, secret Secret) *Protocol {
	p := New(self, v, secret)
	p.joined = true
	p.joining = &joining{greeted: make(map[view.Process]bool), ahead: make(map[stream]uint64)}
	return p
}

// join begins the joining of this process once it is in its own view, and goes on
// with it. Other new ones need its greeting.
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
	if !j.whole {
		p.askPast()
	}
}

// reconcilePast asks or answers once more what the channel to q, of the own rank, may
// have lost.
func (p *Protocol) reconcilePast(q view.Process) {
	if j := p.joining; p.partial() && j.asked && j.donor == q && !j.resumption.arrived {
		p.recall()
	}
	p.answerRecallAgain(q)
}

// Joining implements protection.Protocol.
func (p *Protocol) Joining() bool { return p.joining != nil }

// Whole implements protection.Protocol.
func (p *Protocol) Whole() bool { return !p.partial() }

// partial reports whether this process lacks some of its rank's past.
func (p *Protocol) partial() bool { return p.joining != nil && !p.joining.whole }

// newcomers returns the live processes of v that were not there before.
func (p *Protocol) newcomers(v view.View) []view.Process {
	var new []view.Process
	for _, q := range v.Processes() {
		if q != p.self && v.Live(q) && (!p.v.Contains(q) || p.v.State(q) == view.Vacant) {
			new = append(new, q)
		}
	}
	return new
}

// admit makes room for q, which is new in the view. What this process has forgotten
// of its messages to q's rank, q has to get out of that rank's past.
func (o *outbox) admit(q view.Process) {
	for _, b := range o.all {
		if b.dest != q.Rank {
			continue
		}
		forgotten := b.forgotten()
		b.acked[q.Replica], b.blind[q.Replica] = forgotten, forgotten > 0
	}
}

// meet lets q, which is new in the view, know that it is, and propose to it what
// is not stable.
func (p *Protocol) meet(q view.Process) {
	p.greet(q)
	if q.Rank != p.self.Rank || !p.leads() {
		return
	}
	for _, h := range p.decisions.inOrder() {
		p.emit(q, p.control(frame.Determinant, h.Context, h.Index, h.Outcome))
	}
}

// greet tells q that it is in this process's view, after what this process has of
// the messages of q's rank. One that was new itself asks for what it lacks, once it
// knows what that is.
func (p *Protocol) greet(q view.Process) {
	if q.Rank != p.self.Rank {
		p.acknowledgeAll(q)
	}
	f := p.control(frame.Greet, 0, 0, nil)
	f.Sync = p.joined && !p.partial()
	p.emit(q, f)
}

// receiveGreet takes note that from has this process in its view, and sends it what
// it lacks if it asks.
func (p *Protocol) receiveGreet(from view.Process, f frame.Frame) {
	if f.Sync && from.Rank != p.self.Rank && p.takeover.promoted() {
		p.resend(from)
	}
	if p.partial() {
		p.joining.greeted[from] = true
		p.join()
	}
}

// askPast asks the master for its past, once every live process has this one in
// its view: from then on nobody forgets what this process lacks, and no outcome
// becomes stable without it. The master's past has all that was forgotten and
// stable before.
func (p *Protocol) askPast() {
	j := p.joining
	master, ok := p.v.Master(p.self.Rank)
	if !ok || master == p.self {
		p.out.Lost = "nobody is left who could bring this process up to date"
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

// recall asks for the next piece of the past.
func (p *Protocol) recall() {
	p.emit(p.joining.donor, p.control(frame.Recall, 0, p.joining.position, nil))
}

// receiveRecall answers a new replica, now or as soon as this process decides.
func (p *Protocol) receiveRecall(from view.Process, f frame.Frame) {
	p.recalls[from.Replica] = recall{position: f.Seq}
	p.answerRecall(from)
}

// answerRecall answers q once this process decides, and q has all that it holds: only
// then has q all outcomes that may have been seen and are not in its past.
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

// answerRecallAgain answers q once more, because the channel to it may have lost
// the last answer.
func (p *Protocol) answerRecallAgain(q view.Process) {
	if r, ok := p.recalls[q.Replica]; ok {
		r.answered = false
		p.recalls[q.Replica] = r
		p.answerRecall(q)
	}
}

// answerRecalls answers those that asked before they could be answered, and forgets
// those that are not live any more.
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

// receivePast takes a piece of the rank's past. One that was not asked for last is
// late, or came twice.
func (p *Protocol) receivePast(from view.Process, f frame.Frame) error {
	j := p.joining
	if !p.partial() || !j.asked || from != j.donor || f.Seq != j.position || j.resumption.arrived {
		return nil
	}
	if len(f.Payload) == 0 && !f.Sync {
		p.out.Lost = fmt.Sprintf("%v does not keep what has happened to rank %d", from, from.Rank)
		return nil
	}
	j.position += uint64(len(f.Payload))
	if err := p.relive(append(j.rest, f.Payload...)); err != nil {
		return err
	}
	switch {
	case p.out.Lost != "":
	case j.resumption.arrived: // the rest is for Resume
		j.resumption.last = f.Sync
	case !f.Sync:
		p.recall()
	default:
		return p.endPast()
	}
	return nil
}

// endPast is the end of the past.
func (p *Protocol) endPast() error {
	switch j := p.joining; {
	case len(j.rest) > 0 || j.resumption.within():
		return fmt.Errorf("past ends within a record")
	case j.beginning != protection.RecordStart && !j.resumption.resumed:
		return fmt.Errorf("past ends without the checkpoint that it was to have")
	}
	p.become()
	return nil
}

// relive lets happen what the records in b say, and keeps the beginning of the last
// one if it is cut off.
func (p *Protocol) relive(b []byte) error {
	j := p.joining
	for len(b) > 0 && !j.resumption.arrived && p.out.Lost == "" {
		if j.resumption.left > 0 {
			b = p.reliveState(b)
			continue
		}
		r, rest, err := protection.ReadRecord(b, p.self.Rank)
		if errors.Is(err, protection.ErrCut) {
			break
		}
		if err == nil {
			err = p.reliveRecord(r)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	p.joining.rest = b
	return nil
}

func (p *Protocol) reliveRecord(r protection.Record) error {
	switch j := p.joining; {
	case !j.told:
		j.told = true
		return p.reliveBeginning(r.Kind)
	case j.resumption.within():
		return p.reliveCheckpoint(r)
	case r.Kind == protection.RecordMessage:
		return p.reliveMessage(*r.Message)
	case r.Kind == protection.RecordOutcome:
		return p.reliveOutcome(r.Outcome)
	}
	return p.reliveCheckpoint(r)
}

// reliveMessage delivers a message of the past. It has no digest: it is acknowledged
// by number alone, and nobody compares it.
func (p *Protocol) reliveMessage(m protection.Message) error {
	if m.Source >= p.v.N || m.Source == p.self.Rank {
		return fmt.Errorf("past has a message of rank %d", m.Source)
	}
	a, err := p.inbox.from(m.Context, m.Source)
	if err != nil {
		return err
	}
	switch {
	case m.Seq == 0 || m.Seq > a.next:
		return fmt.Errorf("past has message %d of rank %d in context %d after number %d", m.Seq, m.Source, m.Context, a.next-1)
	case m.Seq == a.next: // else another donor has told it
		a.next++
		p.out.Deliver = append(p.out.Deliver, m)
	}
	return nil
}

// reliveOutcome shows an outcome of the past. If it is here as a determinant, the
// master's word that it is stable is on its way.
func (p *Protocol) reliveOutcome(det protection.Determinant) error {
	d := &p.decisions
	if err := d.check(det); err != nil {
		return err
	}
	if d.spans >= maxSpans {
		return fmt.Errorf("outcomes in %d ranges are too many", d.spans)
	}
	if d.record(det.Point) {
		p.out.Decided = append(p.out.Decided, det)
	}
	return nil
}

// become makes this process whole: it knows all that its rank knows, and takes from
// now on what comes.
func (p *Protocol) become() {
	j := p.joining
	j.whole, j.rest = true, nil
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

// produced takes note that this process has produced another message of b.
func (p *Protocol) produced(b *backlog) {
	s := stream{b.context, b.dest}
	if n, ok := p.joining.ahead[s]; ok && b.seq >= n {
		delete(p.joining.ahead, s)
		p.catchUp()
	}
}

// catchUp ends the joining of a process that is whole and has produced all that
// others had of its rank.
func (p *Protocol) catchUp() {
	if j := p.joining; j.whole && len(j.ahead) == 0 {
		p.joining = nil
	}
}
