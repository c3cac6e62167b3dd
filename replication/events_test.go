package replication

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An event changes the state of the whole job.
type event struct {
	kind eventKind
	p    int // process or, for tear and mend, channel
	incident
	statement protection.UpToDate // statement of returns
}

type eventKind uint8

const (
	happens    eventKind = iota // an incident at p
	crash                       // p stops
	suspect                     // the view fails p, which is running
	exit                        // p, which is done, ends
	recordEnd                   // the view records the end of p, which has stopped
	reset                       // the contents of the channel from p are lost, and p is told
	tear                        // the last frame on the channel is lost, but not the next frames of p
	mend                        // p is told of the loss
	promotes                    // the view makes the replica p the master
	partitions                  // the view fails one side of a partition, which is running
	joins                       // the view contains p, which is new in its rank
	setsAside                   // the view sets p aside, perhaps again
	returns                     // the view lets p count again, as stated
	heals                       // the contents of the channels between the sides are lost, and all processes are told
)

// eventsOf lists the possible events in a state, in a fixed order.
func (w *jobStates) eventsOf(st state) []event {
	var evs []event
	t, v := w.faultsOf(st), w.current(st)
	if w.loses && w.lost(v) {
		return nil
	}
	for _, said := range w.statements.all[st[atWords]] {
		evs = append(evs, event{kind: returns, p: said.of, statement: said.UpToDate})
	}
	for i, id := range w.ids {
		if t.stopped(i) {
			if v.Live(id) {
				evs = append(evs, event{kind: recordEnd, p: i})
			}
			continue
		}
		if w.local(st, i).active {
			evs = w.incidents(st, i, evs)
		}
		if v.Live(id) {
			evs = w.ends(st, i, evs)
		}
	}
	for rank := range w.n {
		if q, ok := v.Joiner(rank); ok && t.joins > 0 && len(v.LiveReplicas(rank)) < max(2, w.r) {
			evs = append(evs, event{kind: joins, p: rank*w.most() + q.Replica})
		}
	}
	if t.partitions > 0 {
		evs = append(evs, event{kind: heals})
		if w.outlives(st) {
			evs = append(evs, event{kind: partitions})
		}
	}
	return evs
}

// lost reports whether a rank has no replica left. This ends the job.
func (w *jobStates) lost(v view.View) bool {
	for rank := range w.n {
		if _, ok := v.OutputLeader(rank); !ok {
			return true
		}
	}
	return false
}

// outlives reports whether each rank still has a replica if the given side fails.
func (w *jobStates) outlives(st state) bool {
	v, t := w.current(st), w.faultsOf(st)
	left := make(map[int]bool)
	for i, p := range w.ids {
		if !slices.Contains(w.side, p) && t.crashed&(1<<i) == 0 && (v.State(p) == view.Finished || v.Counts(p) && w.local(st, i).logComplete) {
			left[p.Rank] = true
		}
	}
	return len(left) == w.n
}

func (t faults) stopped(i int) bool { return (t.crashed|t.exited)&(1<<i) != 0 }

// incidents lists the possible incidents at process i and its channels.
func (w *jobStates) incidents(st state, i int, evs []event) []event {
	l, t := w.local(st, i), w.faultsOf(st)
	if l.notStarted {
		if h := w.histories.all[st[atHistory]]; w.current(st).Live(w.ids[i]) {
			evs = append(evs, event{p: i, incident: incident{kind: begins, what: h[len(h)-1]}})
		}
		return evs
	}
	if !l.done {
		evs = append(evs, event{p: i, incident: incident{kind: called}})
	}
	evs = append(evs, event{p: i, incident: incident{kind: ticked}})
	for _, v := range w.histories.all[st[atHistory]] {
		if w.views.all[v].Epoch != l.epoch { // an older view may arrive late
			evs = append(evs, event{p: i, incident: incident{kind: learned, what: v}})
		}
	}
	for j := range w.ids {
		if q := w.waiting(st, j, i); len(q.frames) > 0 && l.known&(1<<j) != 0 {
			evs = append(evs, event{p: i, incident: incident{kind: delivered, from: uint8(j), what: q.frames[0]}})
		}
		way := incident{from: uint8(j)}
		if w.waiting(st, i, j).frames != nil && t.resets > 0 {
			evs = append(evs, event{kind: reset, p: i, incident: way})
		}
		if w.waiting(st, i, j).frames != nil && t.tears > 0 {
			evs = append(evs, event{kind: tear, p: i, incident: way})
		}
		if t.torn&(1<<(i*len(w.ids)+j)) != 0 {
			evs = append(evs, event{kind: mend, p: i, incident: way})
		}
	}
	return evs
}

// ends lists the possible ends of process i, which is live.
func (w *jobStates) ends(st state, i int, evs []event) []event {
	l, t := w.local(st, i), w.faultsOf(st)
	if t.crashes > 0 && w.spare(st, i) {
		evs = append(evs, event{kind: crash, p: i})
	}
	if t.suspicions > 0 && w.spare(st, i) {
		evs = append(evs, event{kind: suspect, p: i})
	}
	if t.promotions > 0 && l.logComplete && !w.current(st).IsMaster(w.ids[i]) {
		evs = append(evs, event{kind: promotes, p: i})
	}
	if t.asides > 0 && !w.current(st).IsMaster(w.ids[i]) && w.masterRuns(st, w.ids[i].Rank) {
		evs = append(evs, event{kind: setsAside, p: i})
	}
	if w.exits && l.active && l.done && l.keeps == 0 {
		evs = append(evs, event{kind: exit, p: i})
	}
	return evs
}

// masterRuns reports whether the master of rank has not crashed. While the master is silent, no replica is set
// aside.
func (w *jobStates) masterRuns(st state, rank int) bool {
	for i, p := range w.ids {
		if p.Rank == rank && w.current(st).IsMaster(p) {
			return !w.faultsOf(st).stopped(i)
		}
	}
	return false
}

// spare reports whether the rank of process i has another replica that counts.
func (w *jobStates) spare(st state, i int) bool {
	v, t := w.current(st), w.faultsOf(st)
	for j, q := range w.ids {
		if j == i || q.Rank != w.ids[i].Rank || t.crashed&(1<<j) != 0 {
			continue
		}
		if v.State(q) == view.Finished || v.Live(q) && w.local(st, j).logComplete && (v.Counts(q) || w.loses) {
			return true
		}
	}
	return false
}

// pressing reports whether an event eventually happens. Faults need not happen, and neither need events of
// processes that have crashed or failed in the view: their frames may arrive or be lost.
func (w *jobStates) pressing(st state, ev event) bool {
	v, t := w.current(st), w.faultsOf(st)
	switch ev.kind {
	case recordEnd, mend, returns:
		return true
	case happens:
		from := w.ids[ev.from]
		lost := v.State(from) == view.Failed || t.crashed&(1<<ev.from) != 0
		return v.Live(w.ids[ev.p]) && (ev.incident.kind != delivered || !lost)
	}
	return false
}

// describe describes an event.
func (w *jobStates) describe(ev event) string {
	p, q := w.ids[ev.p], w.ids[ev.from]
	switch ev.kind {
	case crash:
		return fmt.Sprintf("%v crashes", p)
	case suspect:
		return fmt.Sprintf("the view fails %v, which is running", p)
	case exit:
		return fmt.Sprintf("%v ends", p)
	case promotes:
		return fmt.Sprintf("the view makes %v the master", p)
	case recordEnd:
		return fmt.Sprintf("the view records that %v has stopped", p)
	case reset:
		return fmt.Sprintf("all frames on the channel %v -> %v are lost, and it reopens", p, q)
	case tear:
		return fmt.Sprintf("the last frame on the channel %v -> %v is lost", p, q)
	case mend:
		return fmt.Sprintf("the channel %v -> %v reopens", p, q)
	case setsAside:
		return fmt.Sprintf("the view sets %v aside", p)
	case returns:
		return fmt.Sprintf("the view lets %v count again, as stated in %+v", p, ev.statement)
	case joins:
		return fmt.Sprintf("the view lets %v join its rank", p)
	case partitions:
		return fmt.Sprintf("the view fails %v, which are running", w.side)
	case heals:
		return fmt.Sprintf("all frames on channels to and from %v are lost, and the channels reopen", w.side)
	}
	return fmt.Sprintf("%v %s", p, w.describeIncident(ev.incident))
}

func (w *jobStates) describeIncident(in incident) string {
	switch in.kind {
	case called:
		return "makes its next call"
	case ticked:
		return "ticks"
	case begins:
		return fmt.Sprintf("begins with view %v", w.views.all[in.what])
	case learned:
		return fmt.Sprintf("gets view %v", w.views.all[in.what])
	case reopened:
		return fmt.Sprintf("reopens its channel to %v", w.ids[in.from])
	}
	f := w.frames.all[in.what]
	return fmt.Sprintf("receives %s %d %x of context %d from %v", kindNames[f.Kind], f.Seq, f.Payload, f.Context, w.ids[in.from])
}
