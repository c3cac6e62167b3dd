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
//	new --- all have greeted ---> asking the master --- log replayed ---> whole --- caught up --->
//
// Until it is whole, the replica lacks a part of its rank's history, and accepts messages only from the log. From
// then on it can be master, however far its program is.
type joining struct {
	begun    bool
	greeted  map[view.Process]bool // processes that have this one in their view
	donor    view.Process          // the master that was asked
	asked    bool
	position uint64 // bytes of the donor's log that have arrived
	rest     []byte // unprocessed part of these bytes: an incomplete record, or everything after a checkpoint
	told     bool   // the first record has arrived
	// beginning is the kind of the first record, or zero before it has arrived.
	beginning  protection.RecordKind
	resumption resumption
	// ahead contains the streams in which other processes had more messages of the rank than this process
	// had produced when it became whole, with the number of their last message.
	ahead map[stream]uint64
}

// NewJoining returns the protocol of a process that is new in its rank. v need not contain the process yet. The
// process participates once the other processes have acknowledged the messages that they have from its rank, and
// the master has sent the message log of the rank.
func NewJoining(self view.Process, v view.View, secret Secret) *Protocol {
	p := New(self, v, secret)
	p.joined, p.lacksLog = true, true
	p.joining = &joining{greeted: make(map[view.Process]bool), ahead: make(map[stream]uint64)}
	return p
}

// join starts or continues the joining of this process once the process is in its own view. Other new processes
// need its greeting.
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
	if p.lacksLog {
		p.requestLog()
	}
}

// reconcileLog repeats a request or an answer that the channel to q, of the same rank, may have lost.
func (p *Protocol) reconcileLog(q view.Process) {
	if j := p.joining; p.lacksLog && j.asked && j.donor == q && !j.resumption.arrived {
		p.requestPiece()
	}
	p.logRequests.answerAgain(q)
}

// Joining implements protection.Protocol.
func (p *Protocol) Joining() bool { return p.joining != nil }

// LogComplete implements protection.Protocol.
func (p *Protocol) LogComplete() bool { return !p.lacksLog }

// introduce greets q, which is new in the view, and proposes to it the outcomes that are not stable.
func (p *Protocol) introduce(q view.Process) {
	p.greet(q)
	if q.Rank == p.self.Rank && p.agreement.leads() {
		p.agreement.offerAll(q)
	}
}

// greet acknowledges to q the messages that this process has from the rank of q, and then tells q that it is in
// this process's view. A new process, once it is whole, also requests the messages that it lacks.
func (p *Protocol) greet(q view.Process) {
	if q.Rank != p.self.Rank {
		p.inbox.acknowledgeAll(q)
	}
	f := p.control(frame.Greet, 0, 0, nil)
	f.Sync = p.joined && !p.lacksLog
	p.emit(q, f)
}

// receiveGreet records that from has this process in its view. If from requests missing messages, receiveGreet
// sends them.
func (p *Protocol) receiveGreet(from view.Process, f frame.Frame) {
	if f.Sync && from.Rank != p.self.Rank && p.agreement.isMaster() {
		p.outbox.resend(from)
	}
	if p.lacksLog {
		p.joining.greeted[from] = true
		p.join()
	}
}

// requestLog requests the master's message log, once every live process has this one in its view. From then on no
// process drops messages that this process lacks, and no outcome becomes stable without this process. The master's
// log contains all messages that were dropped before, and all outcomes that were stable before.
func (p *Protocol) requestLog() {
	j := p.joining
	master, ok := p.v.Master(p.self.Rank)
	if !ok || master == p.self {
		p.out.Lost = "no replica is left that could send the message log"
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
	p.requestPiece()
}

// requestPiece requests the next piece of the message log.
func (p *Protocol) requestPiece() {
	p.emit(p.joining.donor, p.control(frame.LogRequest, 0, p.joining.position, nil))
}

// receiveLog processes a piece of the rank's message log. A piece that does not answer the last request
// is late or a duplicate.
func (p *Protocol) receiveLog(from view.Process, f frame.Frame) error {
	j := p.joining
	if !p.lacksLog || !j.asked || from != j.donor || f.Seq != j.position || j.resumption.arrived {
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
	case j.resumption.arrived: // Resume processes the remaining records
		j.resumption.last = f.Sync
	case !f.Sync:
		p.requestPiece()
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
		if errors.Is(err, protection.ErrTruncated) {
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
		return p.inbox.replay(*r.Message)
	case r.Kind == protection.RecordOutcome:
		return p.agreement.replay(r.Outcome)
	}
	return p.replayCheckpoint(r)
}

// endReplay ends the replay: this process has the complete history of its rank, and accepts frames from now on.
func (p *Protocol) endReplay() {
	j := p.joining
	p.lacksLog, j.rest = false, nil
	for rank, qs := range p.live {
		for _, q := range qs {
			if rank != p.self.Rank {
				p.greet(q)
			}
		}
	}
	for _, b := range p.outbox.all {
		for _, q := range p.live[b.dest] {
			if n := b.receivers[q.Replica].acked; n > b.seq && n > j.ahead[stream{b.context, b.dest}] {
				j.ahead[stream{b.context, b.dest}] = n
			}
		}
	}
	p.catchUp()
	p.agreement.report()
}

// produced records that this process has produced one more message of b.
func (p *Protocol) produced(b *backlog) {
	s := stream{b.context, b.dest}
	if n, ok := p.joining.ahead[s]; ok && b.seq >= n {
		delete(p.joining.ahead, s)
		p.catchUp()
	}
}

// catchUp ends the joining of a process that is whole and has produced all messages that other processes had
// received from its rank.
func (p *Protocol) catchUp() {
	if !p.lacksLog && len(p.joining.ahead) == 0 {
		p.joining = nil
	}
}
