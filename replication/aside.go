package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// asides records what is known about the replicas of this process's rank that are set aside.
//
//	counts --- view: aside ---> spared --- Ready ---> waited for --- lacks nothing: UpToDate ---> view: counts
//	                              ^                       |
//	                              +---- view: aside again-+
type asides struct {
	// ready contains, per replica, the epoch in its last Ready, in which it was set aside. If the replica has not
	// been set aside again since, outcomes wait for it again.
	ready []uint64
	// upToDate is, per replica, this process's last statement about the replica as its master. reported names this
	// process's last report that it is present: the epoch in which it was set aside, and the term of the master
	// that got the report.
	upToDate []protection.UpToDate
	reported protection.UpToDate
}

// grow makes room for the given number of replicas.
func (a *asides) grow(replicas int) {
	a.ready, a.upToDate = grown(a.ready, replicas), grown(a.upToDate, replicas)
}

// exempts reports whether outcomes do not wait for q, because q is set aside and has not reported Ready since.
func (a *agreement) exempts(q view.Process) bool {
	since := a.v.AsideSince(q)
	return since != 0 && a.asides.ready[q.Replica] != since
}

// maxExempt bounds the bytes held for replicas that are set aside, including exemptCost. Beyond that bound,
// outcomes wait for those replicas.
const (
	maxExempt  = 4 << 20
	exemptCost = 256 // approximate cost of holding an outcome and its backlog, apart from its bytes
)

// settleWithout makes an outcome stable if only replicas that are set aside lack it. The outcome stays
// held for them.
func (a *agreement) settleWithout(h *held) {
	if h.stable || a.decisions.retained+exemptCost*len(a.decisions.held) > maxExempt {
		return
	}
	a.decisions.mark(h)
	a.show(h)
	for _, q := range a.others {
		if h.has[q.Replica] {
			f := a.control(frame.Stable, h.Context, h.Index, nil)
			f.Sync = true
			a.emit(q, f)
		}
	}
}

// report tells the master, once in each of its terms, that this process, which is set aside, is present.
func (a *agreement) report() {
	now := protection.UpToDate{Since: a.v.AsideSince(a.self), Term: a.term()}
	if now.Since == 0 || now == a.asides.reported || a.lacksLog || !a.active() {
		return
	}
	if master, ok := a.v.Master(a.self.Rank); ok {
		a.asides.reported = now
		a.emit(master, a.control(frame.Ready, 0, now.Since, nil))
	}
}

// reportAgain repeats the report if the channel to q, the master, may have lost it.
func (a *agreement) reportAgain(q view.Process) {
	if a.v.IsMaster(q) {
		a.asides.reported = protection.UpToDate{}
		a.report()
	}
	if a.leads() {
		a.asides.upToDate[q.Replica] = protection.UpToDate{}
		a.sendUpToDate()
	}
}

// receiveReady records that from, which is set aside, is present: outcomes wait for it from now on.
func (a *agreement) receiveReady(from view.Process, f frame.Frame) error {
	if f.Seq == 0 {
		return fmt.Errorf("ready frame without an epoch")
	}
	a.asides.ready[from.Replica] = f.Seq
	a.asides.upToDate[from.Replica] = protection.UpToDate{}
	if a.leads() {
		a.sendUpToDate()
	}
	return nil
}

// sendUpToDate sends UpToDate to replicas that are set aside and have reported Ready, once they have all
// outcomes.
func (a *agreement) sendUpToDate() {
	for _, q := range a.others {
		now := protection.UpToDate{Since: a.v.AsideSince(q), Term: a.takeover.term}
		if now.Since == 0 || a.exempts(q) || a.asides.upToDate[q.Replica] == now || !a.decisions.reached(q.Replica) {
			continue
		}
		a.asides.upToDate[q.Replica] = now
		a.emit(q, a.control(frame.UpToDate, 0, now.Since, binary.LittleEndian.AppendUint64(nil, now.Term)))
	}
}

// receiveUpToDate passes on the master's statement that this process, which is set aside, lacks nothing. It
// ignores a statement that does not fit this process's view: such a statement is outdated, or answers a report in
// a later view.
func (a *agreement) receiveUpToDate(from view.Process, f frame.Frame) error {
	if len(f.Payload) != 8 {
		return fmt.Errorf("malformed term of %d bytes", len(f.Payload))
	}
	said := protection.UpToDate{Since: f.Seq, Term: binary.LittleEndian.Uint64(f.Payload)}
	if a.v.IsMaster(from) && said.Since != 0 && said == (protection.UpToDate{Since: a.v.AsideSince(a.self), Term: a.term()}) {
		a.out.UpToDate = said
	}
	return nil
}
