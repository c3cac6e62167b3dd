package replication

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Protocol is the replication protocol of one process. It implements protection.Protocol.
type Protocol struct {
	self view.Process
	v    view.View
	live [][]view.Process // per rank: its live replicas, lowest index first
	// others contains the live replicas of this process's rank without itself. It is empty once this
	// process is out of the view.
	others []view.Process

	outbox    outbox
	inbox     inbox
	secret    Secret
	disputes  []dispute   // waiting for this process's vote
	disputed  map[int]int // per replica: number of disputes received
	decisions decisions
	takeover  takeover
	asides    asides
	joining   *joining       // nil: this process has caught up with its rank
	joined    bool           // it was once new in its rank
	resumed   bool           // it has resumed from a checkpoint
	recalls   map[int]recall // per replica: request of a new one for the message log

	out protection.Output
}

var _ protection.Protocol = (*Protocol)(nil)

// A Secret is the random input of a process's digest keys. No other process must know it; otherwise that
// process could predict keys and forge messages.
type Secret [keySize]byte

// New returns the protocol of process self, which has not taken a step yet, in a job with view v. The
// rank's first master starts as master. Another replica that v already names master takes over at its
// first Tick or View, because an earlier master may have left determinants at the others.
func New(self view.Process, v view.View, secret Secret) *Protocol {
	p := &Protocol{
		self:      self,
		secret:    secret,
		outbox:    newOutbox(v.R),
		inbox:     newInbox(),
		decisions: newDecisions(v.R),
		takeover:  newTakeover(v.R),
		asides:    newAsides(v.R),
		recalls:   make(map[int]recall),
		disputed:  make(map[int]int),
	}
	p.outbox.released = &p.out.Released
	p.adopt(v)
	if p.active() && v.IsMaster(self) && p.termOf() == firstTerm {
		p.takeover.term = firstTerm
	}
	return p
}

// adopt makes v the current view.
func (p *Protocol) adopt(v view.View) {
	p.v = v
	p.outbox.grow(v.R)
	p.decisions.grow(v.R)
	p.takeover.grow(v.R)
	p.asides.grow(v.R)
	p.live = make([][]view.Process, v.N)
	for rank := range p.live {
		p.live[rank] = v.LiveReplicas(rank)
	}
	p.others = nil
	if !p.active() {
		return
	}
	for _, q := range p.live[p.self.Rank] {
		if q != p.self {
			p.others = append(p.others, q)
		}
	}
}

// active reports whether this process still takes part. A process that is out of the view does nothing
// (R5).
func (p *Protocol) active() bool { return p.v.Live(p.self) }

// ended reports whether this process has permanently stopped taking part.
func (p *Protocol) ended() bool {
	s := p.v.State(p.self)
	return s == view.Finished || s == view.Failed
}

// reset empties the Output of the last call, and releases its payloads.
func (p *Protocol) reset() {
	clear(p.out.Send)
	clear(p.out.Deliver)
	clear(p.out.Decided)
	clear(p.out.Released)
	clear(p.out.Diverged)
	p.out = protection.Output{
		Send: p.out.Send[:0], Deliver: p.out.Deliver[:0], Decided: p.out.Decided[:0],
		Released: p.out.Released[:0], Diverged: p.out.Diverged[:0], Recalls: p.out.Recalls[:0],
	}
}

// emit sends a frame of this process on the channel to q.
func (p *Protocol) emit(q view.Process, f frame.Frame) {
	p.out.Send = append(p.out.Send, protection.Envelope{To: q, Frame: f})
}

// control returns a frame that carries no message of the program.
func (p *Protocol) control(kind frame.Kind, context uint32, seq uint64, payload []byte) frame.Frame {
	return frame.Frame{
		Header: frame.Header{
			Kind: kind, Context: context, Rank: uint32(p.self.Rank), Seq: seq, Size: uint64(len(payload)),
		},
		Payload: payload,
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
	b.sum = p.summed(b.sum, &m)
	if p.joining != nil {
		p.produced(b)
	}
	if m.Dest == p.self.Rank {
		p.out.Deliver = append(p.out.Deliver, m)
		return p.out
	}
	p.compareClaimed(b, &m)
	p.answerDisputes(b, &m)
	if p.outbox.keep(b, m, p.live[m.Dest]) && p.takeover.isMaster() {
		p.transmit(b, m)
	}
	return p.out
}

// Receive implements protection.Protocol. Frames of failed processes are ignored without an error, since
// their sender may not know yet (R5).
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
	ofMessages := f.Kind == frame.Data || f.Kind == frame.Ack // hence only between ranks
	if f.Kind != frame.Greet && sameRank == ofMessages {
		return fmt.Errorf("kind is not allowed from rank %d to rank %d", from.Rank, p.self.Rank)
	}
	// The last frames of a finished process may still be in transit. Its messages, acknowledgements and
	// disputes count. Other frames concerned itself, and it needs nothing any more.
	if state == view.Finished && f.Kind != frame.Data && f.Kind != frame.Ack && f.Kind != frame.Dispute {
		return nil
	}
	switch f.Kind {
	case frame.Data:
		return p.receiveData(from, f)
	case frame.Ack:
		return p.receiveAck(from, f)
	case frame.Determinant:
		return p.receiveDeterminant(from, f)
	case frame.DeterminantAck:
		return p.receiveDeterminantAck(from, f)
	case frame.Stable:
		return p.receiveStable(from, f)
	case frame.Sync:
		return p.receiveSync(from, f)
	case frame.SyncReply:
		return p.receiveSyncReply(from, f)
	case frame.Dispute:
		return p.receiveDispute(from, f)
	case frame.Ready:
		return p.receiveReady(from, f)
	case frame.UpToDate:
		return p.receiveUpToDate(from, f)
	case frame.Greet:
		p.receiveGreet(from, f)
		return nil
	case frame.Recall:
		p.receiveRecall(from, f)
		return nil
	case frame.MessageLog:
		return p.receiveLog(from, f)
	}
	return fmt.Errorf("unknown kind")
}

// View implements protection.Protocol.
func (p *Protocol) View(v view.View) protection.Output {
	p.reset()
	if v.Epoch <= p.v.Epoch || v.N != p.v.N || v.R < p.v.R || v.Valid() != nil || p.ended() {
		return p.out
	}
	before := p.termOf()
	newcomers := p.newcomers(v)
	p.adopt(v)
	if !p.active() {
		return p.out
	}
	for _, q := range newcomers {
		p.outbox.admit(q)
	}
	p.answerDisputes(nil, nil)
	p.outbox.forgetGone(p.live)
	for _, q := range newcomers {
		p.introduce(q)
	}
	p.join()
	p.promote()
	p.advance()
	if now, ok := v.Master(p.self.Rank); ok && p.termOf() != before {
		p.answerSync(now)
	}
	p.answerRecalls()
	p.report()
	return p.out
}

// Reopened implements protection.Protocol: it sends q again everything that q may need and has not
// acknowledged.
func (p *Protocol) Reopened(q view.Process) protection.Output {
	p.reset()
	if !p.active() || !p.v.Live(q) || q == p.self {
		return p.out
	}
	if q.Rank == p.self.Rank {
		p.reconcile(q)
		p.reconcileLog(q)
		p.reportAgain(q)
	} else if p.takeover.isMaster() {
		p.resend(q)
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
		p.advance()
	}
	p.acknowledgeDue()
	return p.out
}

// Retained implements protection.Protocol: the payload bytes in the backup table, the bytes of outcomes
// that are not known to be stable, and one for each entry.
func (p *Protocol) Retained() int {
	if !p.active() {
		return 0
	}
	return p.outbox.retained + p.decisions.retained
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
