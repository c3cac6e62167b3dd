package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// asides is the state of the replicas of this process's rank that are set aside.
//
//	counts --- view: aside ---> spared --- Ready ---> waited for --- lacks nothing: UpToDate ---> view: counts
//	                              ^                       |
//	                              +---- view: aside again-+
type asides struct {
	// ready holds, per replica, the epoch that its last Ready named: the one in which it was set aside.
	// While that is still the epoch in which it was last set aside, outcomes wait for it again.
	ready []uint64
	// upToDate is, per replica, this process's last statement as its master. reported contains, in Since,
	// this process's own last statement that it is present.
	upToDate []protection.UpToDate
	reported protection.UpToDate
}

func newAsides(replicas int) asides {
	return asides{ready: make([]uint64, replicas), upToDate: make([]protection.UpToDate, replicas)}
}

// grow makes room for the given number of replicas.
func (a *asides) grow(replicas int) {
	a.ready, a.upToDate = grown(a.ready, replicas), grown(a.upToDate, replicas)
}

// exempts reports whether outcomes do not wait for q: it is set aside and has not reported since.
func (p *Protocol) exempts(q view.Process) bool {
	since := p.v.AsideSince(q)
	return since != 0 && p.asides.ready[q.Replica] != since
}

// maxExempt bounds the bytes held for replicas that are set aside, including exemptCost. Beyond that,
// outcomes wait for them.
const (
	maxExempt  = 4 << 20
	exemptCost = 256 // approximate cost of holding an outcome and its backlog, apart from its bytes
)

// settleWithout makes an outcome stable if only replicas that are set aside lack it. The outcome stays
// held for them.
func (p *Protocol) settleWithout(h *held) {
	if h.stable || p.decisions.retained+exemptCost*len(p.decisions.held) > maxExempt {
		return
	}
	p.decisions.mark(h)
	p.show(h)
	for _, q := range p.others {
		if h.has[q.Replica] {
			f := p.control(frame.Stable, h.Context, h.Index, nil)
			f.Sync = true
			p.emit(q, f)
		}
	}
}

// report tells the master, once in each of its terms, that this process, which is set aside, is present.
func (p *Protocol) report() {
	now := protection.UpToDate{Since: p.v.AsideSince(p.self), Term: p.termOf()}
	if now.Since == 0 || now == p.asides.reported || p.lacksLog() || !p.active() {
		return
	}
	if master, ok := p.v.Master(p.self.Rank); ok {
		p.asides.reported = now
		p.emit(master, p.control(frame.Ready, 0, now.Since, nil))
	}
}

// reportAgain repeats the report if the channel to q, the master, may have lost it.
func (p *Protocol) reportAgain(q view.Process) {
	if p.v.IsMaster(q) {
		p.asides.reported = protection.UpToDate{}
		p.report()
	}
	if p.leads() {
		p.asides.upToDate[q.Replica] = protection.UpToDate{}
		p.sendUpToDate()
	}
}

// receiveReady records that from, which is set aside, is present: outcomes wait for it from now on.
func (p *Protocol) receiveReady(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("ready frame without an epoch")
	}
	p.asides.ready[from.Replica] = f.Seq
	p.asides.upToDate[from.Replica] = protection.UpToDate{}
	if p.leads() {
		p.sendUpToDate()
	}
	return nil
}

// sendUpToDate sends UpToDate to replicas that are set aside and have reported Ready, once they lack no
// outcome.
func (p *Protocol) sendUpToDate() {
	for _, q := range p.others {
		now := protection.UpToDate{Since: p.v.AsideSince(q), Term: p.takeover.term}
		if now.Since == 0 || p.exempts(q) || p.asides.upToDate[q.Replica] == now || !p.decisions.reached(q.Replica) {
			continue
		}
		p.asides.upToDate[q.Replica] = now
		p.emit(q, p.control(frame.UpToDate, 0, now.Since, binary.LittleEndian.AppendUint64(nil, now.Term)))
	}
}

// receiveUpToDate passes on the master's statement that this process, which is set aside, lacks nothing.
// A statement that does not fit this process's view is outdated, or answers a report of a later view.
func (p *Protocol) receiveUpToDate(from view.Process, f frame.Frame) error {
	if len(f.Payload) != 8 {
		return fmt.Errorf("malformed term of %d bytes", len(f.Payload))
	}
	said := protection.UpToDate{Since: f.Seq, Term: binary.LittleEndian.Uint64(f.Payload)}
	if p.v.IsMaster(from) && said.Since != 0 && said == (protection.UpToDate{Since: p.v.AsideSince(p.self), Term: p.termOf()}) {
		p.out.UpToDate = said
	}
	return nil
}
