package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// Asides are what is known of replicas of the own rank that are aside.
//
//	counts --- view: aside ---> spared --- Ready ---> waited for --- lacks nothing: UpToDate ---> view: counts
//	                              ^                       |
//	                              +----- view: aside anew-+
type asides struct {
	// ready is, by replica, the epoch since which it was aside when it was last heard to be
	// there. While it is aside since then, outcomes wait for it again.
	ready []uint64
	// upToDate is, by replica, what this process has said last as its master, and reported
	// what it has said last itself, in Since: that it is there.
	upToDate []protection.UpToDate
	reported protection.UpToDate
}

func newAsides(replicas int) asides {
	return asides{ready: make([]uint64, replicas), upToDate: make([]protection.UpToDate, replicas)}
}

// grow makes room for so many replicas.
func (a *asides) grow(replicas int) {
	a.ready, a.upToDate = grown(a.ready, replicas), grown(a.upToDate, replicas)
}

// spares reports whether outcomes do not wait for q: it is aside, and has not been heard since.
func (p *Protocol) spares(q view.Process) bool {
	since := p.v.AsideSince(q)
	return since != 0 && p.asides.ready[q.Replica] != since
}

// maxSpared bounds what is held for those that are aside, sparedCost included: more waits for them.
const (
	maxSpared  = 4 << 20
	sparedCost = 256 // about what it costs to hold an outcome and its backlog, apart from its bytes
)

// settleWithout makes an outcome stable that only replicas lack that are aside. It is kept for them.
func (p *Protocol) settleWithout(h *held) {
	if h.stable || p.decisions.retained+sparedCost*len(p.decisions.held) > maxSpared {
		return
	}
	p.decisions.mark(h)
	p.show(h)
	for _, q := range p.others {
		if h.has[q.Replica] {
			f := p.control(channel.Stable, h.Context, h.Index, nil)
			f.Sync = true
			p.emit(q, f)
		}
	}
}

// report tells the master that this process is there, which is aside, once in each of its terms.
func (p *Protocol) report() {
	now := protection.UpToDate{Since: p.v.AsideSince(p.self), Term: p.termOf()}
	if now.Since == 0 || now == p.asides.reported || p.partial() || !p.active() {
		return
	}
	if master, ok := p.v.Master(p.self.Rank); ok {
		p.asides.reported = now
		p.emit(master, p.control(channel.Ready, 0, now.Since, nil))
	}
}

// reportAgain does so once more if the channel to q, the master, may have lost it.
func (p *Protocol) reportAgain(q view.Process) {
	if p.v.IsMaster(q) {
		p.asides.reported = protection.UpToDate{}
		p.report()
	}
	if p.leads() {
		p.asides.upToDate[q.Replica] = protection.UpToDate{}
		p.welcome()
	}
}

// receiveReady takes note that from, which is aside, is there: outcomes wait for it from now on.
func (p *Protocol) receiveReady(from view.Process, f channel.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("is aside since no epoch")
	}
	p.asides.ready[from.Replica] = f.Seq
	p.asides.upToDate[from.Replica] = protection.UpToDate{}
	if p.leads() {
		p.welcome()
	}
	return nil
}

// welcome tells those that are aside, and that outcomes wait for, that they lack nothing any more,
// once they do not.
func (p *Protocol) welcome() {
	for _, q := range p.others {
		now := protection.UpToDate{Since: p.v.AsideSince(q), Term: p.takeover.term}
		if now.Since == 0 || p.spares(q) || p.asides.upToDate[q.Replica] == now || !p.decisions.reached(q.Replica) {
			continue
		}
		p.asides.upToDate[q.Replica] = now
		p.emit(q, p.control(channel.UpToDate, 0, now.Since, binary.LittleEndian.AppendUint64(nil, now.Term)))
	}
}

// receiveUpToDate passes on the master's word that this process, which is aside, lacks nothing. One
// that does not fit this process's view is out of date, or the answer to a report yet to come.
func (p *Protocol) receiveUpToDate(from view.Process, f channel.Frame) error {
	if len(f.Payload) != 8 {
		return fmt.Errorf("term of %d bytes", len(f.Payload))
	}
	said := protection.UpToDate{Since: f.Seq, Term: binary.LittleEndian.Uint64(f.Payload)}
	if p.v.IsMaster(from) && said.Since != 0 && said == (protection.UpToDate{Since: p.v.AsideSince(p.self), Term: p.termOf()}) {
		p.out.UpToDate = said
	}
	return nil
}
