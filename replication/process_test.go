package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A process is one replica in a schedule. It consists of a Protocol and, in place of the engine, a simple matcher
// for the scripted programs.
type process struct {
	*Protocol
	id         view.Process
	host       host
	script     []op
	pc         int
	seen       memory
	log        []memory                     // hash of the values seen so far, after each step that returned a value
	arrived    []protection.Message         // not matched yet, in order of arrival
	last       map[stream]uint64            // number of the last message delivered
	decided    map[uint64][]byte            // by index
	tried      map[uint64]bool              // Decide has been called
	gone       bool                         // crashed or finished, so it takes no further step
	lost       map[view.Process]lostChannel // channels to be reopened
	messageLog []byte                       // message log of the rank, as records
	cut        bool                         // can never join its rank
	checkpoints
}

// A host is the schedule that a process runs in.
type host interface {
	// carryOut carries out the output of p's protocol.
	carryOut(p *process, out protection.Output) error
	// draw returns the number that p draws, which differs from replica to replica.
	draw(p *process) uint64
	// piece returns the number of bytes of the message log that p sends at once.
	piece(p *process) int
	// ahead reports whether p also draws the number of a later call at once.
	ahead() bool
}

// newProcess returns a process in view v. If v does not contain it, the process has not started yet.
func newProcess(id view.Process, v view.View, script []op, h host) *process {
	p := &process{
		id: id, host: h, script: script,
		last: make(map[stream]uint64), decided: make(map[uint64][]byte),
		tried: make(map[uint64]bool), lost: make(map[view.Process]lostChannel),
		messageLog: []byte{byte(protection.RecordStart)},
	}
	if v.Live(id) {
		p.Protocol = New(id, v, Secret{})
	}
	return p
}

// begin makes p join its rank.
func (p *process) begin(v view.View) { p.Protocol = NewJoining(p.id, v, Secret{}) }

func (p *process) notStarted() bool { return p.Protocol == nil }

// takesPart reports whether p has started and is live in its view.
func (p *process) takesPart() bool { return !p.notStarted() && p.active() }

// knows reports whether q has started in p's view.
func (p *process) knows(q view.Process) bool {
	return !p.notStarted() && p.v.State(q) != view.Vacant
}

// logComplete reports whether p has the complete history of its rank.
func (p *process) logComplete() bool { return !p.notStarted() && !p.lacksLog }

// A lostChannel is a channel whose loss its sender does not know yet.
type lostChannel struct{ swallows bool }

func (p *process) done() bool { return p.pc == len(p.script) }

// step runs one call of the program, if it can proceed.
func (p *process) step() error {
	if p.done() || !p.takesPart() {
		return nil
	}
	switch o := p.script[p.pc]; o.kind {
	case opSend:
		p.pc++
		return p.host.carryOut(p, p.Send(protection.Message{
			Context: o.context, Dest: o.rank, Tag: int32(p.pc), Payload: p.seen.payload(),
		}))
	case opRecv:
		p.match(o.context, o.rank, 0)
	case opRecvAny:
		out, ok := p.decided[o.index]
		if !ok && p.mayDecide(o) {
			return p.decideAny(o)
		}
		if !ok {
			return nil
		}
		source, seq := binary.LittleEndian.Uint64(out), binary.LittleEndian.Uint64(out[8:])
		p.match(wild, int(source), seq)
	case opCheckpoint:
		return p.checkpoint()
	case opDraw:
		out, ok := p.decided[o.index]
		if !ok && p.mayDecide(o) {
			return p.decideDraw(o)
		}
		if !ok {
			return nil
		}
		p.see(binary.LittleEndian.Uint64(out))
	}
	return nil
}

// see finishes a call that returned values to the program.
func (p *process) see(values ...uint64) {
	p.pc++
	p.seen = p.seen.with(values...)
	p.log = append(p.log, p.seen)
}

// match takes the first unmatched message from source, which must have number seq if seq is given.
func (p *process) match(context uint32, source int, seq uint64) {
	for i, m := range p.arrived {
		if m.Context == context && m.Source == source && (seq == 0 || m.Seq == seq) {
			p.arrived = append(p.arrived[:i], p.arrived[i+1:]...)
			p.see(uint64(context), uint64(source), m.Seq, uint64(m.Tag), binary.LittleEndian.Uint64(m.Payload))
			return
		}
	}
}

// decideAny chooses the first message that has arrived.
func (p *process) decideAny(o op) error {
	for _, m := range p.arrived {
		if m.Context == wild {
			b := binary.LittleEndian.AppendUint64(nil, uint64(m.Source))
			return p.decide(o, binary.LittleEndian.AppendUint64(b, m.Seq))
		}
	}
	return nil
}

// decideDraw draws a number, different at every process. Sometimes it also draws the numbers of later calls, so
// that several determinants are in transit.
func (p *process) decideDraw(o op) error {
	for _, later := range p.script[p.pc+1:] {
		if later.kind == opDraw && p.mayDecide(later) && p.host.ahead() {
			if err := p.decide(later, binary.LittleEndian.AppendUint64(nil, p.host.draw(p))); err != nil {
				return err
			}
		}
	}
	return p.decide(o, binary.LittleEndian.AppendUint64(nil, p.host.draw(p)))
}

func (p *process) mayDecide(o op) bool { return p.Decider() && !p.tried[o.index] }

func (p *process) decide(o op, outcome []byte) error {
	p.tried[o.index] = true
	return p.host.carryOut(p, p.Decide(protection.Determinant{Point: o.point(), Outcome: outcome}))
}

// take applies out to the process.
func (p *process) take(out protection.Output) error {
	for _, m := range out.Deliver {
		s := stream{m.Context, m.Source}
		if m.Seq != p.last[s]+1 || m.Dest != p.id.Rank {
			return fmt.Errorf("R2: %v received %+v after message %d", p.id, m, p.last[s])
		}
		p.last[s]++
		if m.Source != p.id.Rank {
			p.messageLog = append(protection.AppendMessage(p.messageLog, &m), m.Payload...)
		}
		p.arrived = append(p.arrived, m)
	}
	for _, d := range out.Decided {
		if _, again := p.decided[d.Index]; again || d.Index < p.behind {
			return fmt.Errorf("R1: %v was shown point %d twice", p.id, d.Index)
		}
		p.decided[d.Index] = d.Outcome
		p.messageLog = protection.AppendOutcome(p.messageLog, &d)
	}
	p.state = append(p.state, out.State...)
	p.cut = p.cut || out.Lost != ""
	return nil
}

// pieces returns the answers to new replicas that request the message log.
func (p *process) pieces(out protection.Output) []protection.Envelope {
	var answers []protection.Envelope
	for _, r := range out.LogRequests {
		if !p.reads(r) {
			answers = append(answers, protection.Envelope{To: r.To, Frame: protection.MessageLogFrame(p.id.Rank, r.Position, nil, false)})
			continue
		}
		piece := p.messageLog[min(r.Position, uint64(len(p.messageLog))):]
		last := true
		if most := p.host.piece(p); len(piece) > most {
			piece, last = piece[:most], false
		}
		if last {
			delete(p.readers, r.To.Replica)
		}
		f := protection.MessageLogFrame(p.id.Rank, r.Position, append([]byte(nil), piece...), last)
		answers = append(answers, protection.Envelope{To: r.To, Frame: f})
	}
	return answers
}
