package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Protocol is the replication protocol of one process. It implements protection.Protocol.
type Protocol struct {
	*core
	outbox      *outbox      // the backup table
	inbox       *inbox       // messages received
	audit       *audit       // differences between messages produced and received
	agreement   *agreement   // outcomes of nondeterministic calls, and the master that decides them
	logRequests *logRequests // requests of new replicas for the message log
	joining     *joining     // nil once this process has caught up with its rank
	joined      bool         // this process was once new in its rank
	resumed     bool         // this process has resumed from a checkpoint
}

var _ protection.Protocol = (*Protocol)(nil)

// A Secret is the random input of a process's digest keys. No other process must know it; otherwise that
// process could predict keys and forge messages.
type Secret [keySize]byte

// New returns the protocol of process self, which has not taken a step yet, in a job with view v. The
// rank's first master starts as master. Another replica that v already names master takes over at its
// first Tick or View, because an earlier master may have left determinants at the others.
func New(self view.Process, v view.View, secret Secret) *Protocol {
	c := &core{self: self}
	c.adopt(v)
	out, agree := newOutbox(c), newAgreement(c)
	return &Protocol{
		core: c, outbox: out, inbox: newInbox(c, secret), audit: newAudit(c, out),
		agreement: agree, logRequests: newLogRequests(c, agree),
	}
}

// Send implements protection.Protocol. m.Dest is a rank of the job.
func (p *Protocol) Send(m protection.Message) protection.Output {
	p.reset()
	if !p.active() {
		return p.out
	}
	b := p.outbox.to(m.Context, m.Dest)
	b.seq++
	m.Source, m.Seq = p.self.Rank, b.seq
	b.sum = summed(b.sum, &m)
	if p.joining != nil {
		p.produced(b)
	}
	if m.Dest == p.self.Rank {
		p.out.Deliver = append(p.out.Deliver, m)
		return p.out
	}
	p.audit.produced(b, &m)
	if p.outbox.keep(b, m) && p.agreement.isMaster() {
		p.outbox.transmit(b, m)
	}
	return p.out
}

// Receive implements protection.Protocol. Frames of failed processes are ignored without an error, because a
// sender may not know yet that it has failed (R5).
func (p *Protocol) Receive(from view.Process, f frame.Frame) (protection.Output, error) {
	p.reset()
	if err := p.receive(from, f); err != nil {
		return p.out, fmt.Errorf("frame of kind %d, context %d, seq %d from %v: %w", f.Kind, f.Context, f.Seq, from, err)
	}
	return p.out, nil
}

func (p *Protocol) receive(from view.Process, f frame.Frame) error {
	if from == p.self || !p.v.Contains(from) || p.v.State(from) == view.Vacant {
		return fmt.Errorf("sender is not another process of the job")
	}
	if f.Rank != uint32(from.Rank) {
		return fmt.Errorf("header names rank %d", f.Rank)
	}
	state := p.v.State(from)
	if !p.active() || state == view.Failed {
		return nil
	}
	sameRank := from.Rank == p.self.Rank
	ofMessages := f.Kind == frame.Data || f.Kind == frame.Ack // allowed between different ranks only
	if f.Kind != frame.Greet && sameRank == ofMessages {
		return fmt.Errorf("kind is not allowed from rank %d to rank %d", from.Rank, p.self.Rank)
	}
	// The last frames of a finished process may still be in transit. Its messages, acknowledgements and disputes
	// count. Its other frames are irrelevant, because it needs nothing any more.
	if state == view.Finished && f.Kind != frame.Data && f.Kind != frame.Ack && f.Kind != frame.Dispute {
		return nil
	}
	switch f.Kind {
	case frame.Data:
		return p.inbox.receiveData(from, f)
	case frame.Ack:
		return p.receiveAck(from, f)
	case frame.Determinant:
		return p.agreement.receiveDeterminant(from, f)
	case frame.DeterminantAck:
		return p.answerLogRequestsAfter(p.agreement.receiveDeterminantAck(from, f))
	case frame.Stable:
		return p.agreement.receiveStable(from, f)
	case frame.Sync:
		return p.agreement.receiveSync(from, f)
	case frame.SyncReply:
		return p.answerLogRequestsAfter(p.agreement.receiveSyncReply(from, f))
	case frame.Dispute:
		return p.audit.receiveDispute(from, f)
	case frame.Ready:
		return p.agreement.receiveReady(from, f)
	case frame.UpToDate:
		return p.agreement.receiveUpToDate(from, f)
	case frame.Greet:
		p.receiveGreet(from, f)
		return nil
	case frame.LogRequest:
		p.logRequests.receive(from, f.Seq)
		return nil
	case frame.MessageLog:
		return p.receiveLog(from, f)
	}
	return fmt.Errorf("unknown kind")
}

// receiveAck compares the messages that from has received with those that this process has produced. It records
// that from has the messages of a stream up to f.Seq, even if this process has not produced them yet.
func (p *Protocol) receiveAck(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("acknowledgement without a message number")
	}
	c, err := decodeClaim(f.Seq, f.Payload)
	if err != nil {
		return err
	}
	b, err := p.outbox.acknowledged(f.Context, from.Rank)
	if err != nil || f.Seq <= b.receivers[from.Replica].acked {
		return err
	}
	p.audit.compare(b, from, c)
	b.receivers[from.Replica].acked = f.Seq
	p.audit.answerDisputes(nil, nil)
	p.outbox.forget(b)
	return nil
}

// answerLogRequestsAfter answers the requests for the message log that may have waited for the frame just
// processed, unless processing the frame returned the error err.
func (p *Protocol) answerLogRequestsAfter(err error) error {
	if err == nil {
		p.logRequests.answerAll()
	}
	return err
}

// View implements protection.Protocol.
func (p *Protocol) View(v view.View) protection.Output {
	p.reset()
	if v.Epoch <= p.v.Epoch || v.N != p.v.N || v.R < p.v.R || v.Valid() != nil || p.ended() {
		return p.out
	}
	before := p.term()
	newcomers := p.newcomers(v)
	p.adopt(v)
	p.outbox.grow()
	p.agreement.grow()
	if !p.active() {
		return p.out
	}
	for _, q := range newcomers {
		p.outbox.admit(q)
	}
	p.audit.answerDisputes(nil, nil)
	p.outbox.forgetGone()
	for _, q := range newcomers {
		p.introduce(q)
	}
	p.join()
	p.promote()
	p.agreement.advance()
	if now, ok := v.Master(p.self.Rank); ok && p.term() != before {
		p.agreement.answerSync(now)
	}
	p.logRequests.answerAll()
	p.agreement.report()
	return p.out
}

// Reopened implements protection.Protocol. It resends to q everything that q may need and has not acknowledged.
func (p *Protocol) Reopened(q view.Process) protection.Output {
	p.reset()
	if !p.active() || !p.v.Live(q) || q == p.self {
		return p.out
	}
	if q.Rank == p.self.Rank {
		p.agreement.reconcile(q)
		p.reconcileLog(q)
		p.agreement.reportAgain(q)
	} else if p.agreement.isMaster() {
		p.outbox.resend(q)
	}
	p.greet(q)
	return p.out
}

// Tick implements protection.Protocol.
func (p *Protocol) Tick() protection.Output {
	p.reset()
	if !p.active() {
		return p.out
	}
	p.join()
	if p.promote() {
		p.agreement.advance()
	}
	p.inbox.acknowledgeDue()
	return p.out
}

// promote starts the takeover when a term of this process begins: it sends the contents of the backup table and
// asks the other replicas for the outcomes that they hold.
func (p *Protocol) promote() (begun bool) {
	if begun = p.agreement.changeTerm(); begun {
		p.outbox.flush()
		p.agreement.ask()
	}
	return begun
}

// Decider implements protection.Protocol. The master decides once all replicas know its predecessors'
// decisions, and until the view names another master.
func (p *Protocol) Decider() bool { return p.agreement.decider() }

// Waiting implements protection.Protocol.
func (p *Protocol) Waiting() bool { return p.agreement.leads() && p.agreement.decisions.unstable > 0 }

// Decide implements protection.Protocol. A point that already has an outcome keeps it, and Decided shows that
// outcome if it has not yet been shown. The outcome has at most maxOutcome bytes and belongs to the protocol from
// now on. A process that is not the decider must wait for Decided; its call of Decide has no effect.
func (p *Protocol) Decide(d protection.Determinant) protection.Output {
	p.reset()
	if p.Decider() && p.active() && !p.agreement.decisions.has(d.Point) {
		p.agreement.decide(d)
	}
	return p.out
}

// Retained implements protection.Protocol. It counts the payload bytes in the backup table, the bytes of outcomes
// that are not known to be stable, and one byte per entry.
func (p *Protocol) Retained() int {
	if !p.active() {
		return 0
	}
	return p.outbox.retained + p.agreement.decisions.retained
}

// Sent implements protection.Protocol.
func (p *Protocol) Sent(context uint32, dest int) uint64 {
	if b := p.outbox.streams[stream{context, dest}]; b != nil {
		return b.seq
	}
	return 0
}

// Received implements protection.Protocol.
func (p *Protocol) Received(context uint32, source int) uint64 {
	if a := p.inbox.streams[stream{context, source}]; a != nil {
		return a.next - 1
	}
	return 0
}

// Sums implements protection.Protocol.
func (p *Protocol) Sums() (sums []protection.Sum, ok bool) {
	if p.resumed {
		return nil, false
	}
	return p.outbox.sums(), true
}
