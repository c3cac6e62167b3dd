package replication

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// apply returns the state after an event, or nil if the event changes nothing. The error names the promise that
// the event breaks.
func (w *jobStates) apply(st state, ev event) (state, error) {
	after := slices.Clone(st)
	t, id := w.faultsOf(st), w.ids[ev.p]
	var err error
	switch ev.kind {
	case happens:
		if ev.incident.kind == delivered {
			way := w.way(int(ev.from), ev.p)
			after[way] = w.queues.all[after[way]].rest
		}
		err = w.let(after, ev.p, ev.incident)
	case crash:
		t.crashes--
		t.crashed |= 1 << ev.p
	case suspect:
		t.suspicions--
		w.setState(after, id, view.Failed)
	case exit:
		t.exited |= 1 << ev.p
	case promotes:
		t.promotions--
		v, _ := w.current(st).Promote(id)
		w.installView(after, v)
	case recordEnd:
		w.setState(after, id, map[bool]view.State{true: view.Failed, false: view.Finished}[t.crashed&(1<<ev.p) != 0])
	case joins:
		t.joins--
		w.addReplica(after, id.Rank)
	case setsAside:
		t.asides--
		v, _ := w.current(st).SetAside(id, w.current(st).AsideChanged(id))
		w.installView(after, v)
	case returns:
		v, _ := w.current(st).Return(id, ev.statement.Since, ev.statement.Term)
		w.installView(after, v)
	case partitions:
		t.partitions--
		for _, q := range w.side {
			w.setState(after, q, view.Failed)
		}
	case heals:
		t.partitions--
		err = w.heal(after)
	default:
		err = w.lose(after, &t, ev)
	}
	w.settle(after, &t)
	w.dropOutdated(after)
	after[atFaults] = w.faultsNumber(t)
	if err == nil && slices.Equal(after, st) {
		return nil, nil
	}
	return after, err
}

// lose loses some frames on the channel of ev, or reports their loss to the sender.
func (w *jobStates) lose(st state, t *faults, ev event) error {
	way, bit := w.way(ev.p, int(ev.from)), uint64(1)<<(ev.p*len(w.ids)+int(ev.from))
	switch ev.kind {
	case reset:
		t.resets--
		st[way] = 0
	case tear:
		t.tears--
		t.torn |= bit
		frames := w.queues.all[st[way]].frames
		st[way] = w.queue(frames[:len(frames)-1])
		return nil
	case mend:
		t.torn &^= bit
	}
	return w.let(st, ev.p, incident{kind: reopened, from: ev.from})
}

// heal loses the contents of the channels between the two sides of a partition, and reopens the channels.
func (w *jobStates) heal(st state) error {
	t := w.faultsOf(st)
	across := func(i, j int) bool {
		return slices.Contains(w.side, w.ids[i]) != slices.Contains(w.side, w.ids[j])
	}
	for i := range w.ids {
		for j := range w.ids {
			if across(i, j) {
				st[w.way(i, j)] = 0
			}
		}
	}
	for i := range w.ids {
		for j := range w.ids {
			if across(i, j) && !t.stopped(i) {
				if err := w.let(st, i, incident{kind: reopened, from: uint8(j)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// let applies an incident to process i, and carries out the effects.
func (w *jobStates) let(st state, i int, in incident) error {
	e := w.happen(st[atProcesses+i], in)
	if e.err != nil {
		return e.err
	}
	st[atProcesses+i] = e.next
	for _, p := range e.posts {
		st[w.way(i, p.to)] = w.push(st[w.way(i, p.to)], p.frame)
	}
	if e.upToDate != (protection.UpToDate{}) {
		st[atWords] = w.statement(append(slices.Clone(w.statements.all[st[atWords]]), statement{i, e.upToDate}))
	}
	for _, s := range e.observed {
		var err error
		if st[atSeen], err = w.recordObservation(st[atSeen], w.ids[i].Rank, s); err != nil {
			return err
		}
	}
	for _, pt := range e.shown {
		if err := w.checkShown(st, i, pt); err != nil {
			return err
		}
	}
	return nil
}

// setState makes a view in which p is in state s.
func (w *jobStates) setState(st state, p view.Process, s view.State) {
	if v, changed := w.current(st).With(p, s); changed {
		w.installView(st, v)
	}
}

// addReplica makes a view in which rank has one more replica.
func (w *jobStates) addReplica(st state, rank int) {
	v, _, _ := w.current(st).Join(rank)
	w.installView(st, v)
}

// installView makes v the view.
func (w *jobStates) installView(st state, v view.View) {
	h := slices.Clone(w.histories.all[st[atHistory]])
	st[atHistory] = w.history(append(h, w.viewNumber(v)))
}

// dropOutdated drops outdated statements, which can never become true again.
func (w *jobStates) dropOutdated(st state) {
	v := w.current(st)
	st[atWords] = w.statement(slices.DeleteFunc(slices.Clone(w.statements.all[st[atWords]]), func(said statement) bool {
		_, changes := v.Return(w.ids[said.of], said.Since, said.Term)
		return !changes
	}))
}

// settle normalizes the parts of a state that no longer matter: the states of processes that take no further step,
// and the frames that are in transit to them. A process that knows that it is out of the view is equivalent to one
// that has ended.
func (w *jobStates) settle(st state, t *faults) {
	for j := range w.ids {
		if l := w.local(st, j); l.cut {
			t.crashed |= 1 << j // the process gives up
		} else if !l.active {
			t.exited |= 1 << j
		}
		if !t.stopped(j) {
			continue
		}
		st[atProcesses+j] = uint32(j) // its first state
		for i := range w.ids {
			st[w.way(i, j)] = 0
		}
	}
}

// checkShown checks R4 for an outcome that the program of process i sees. Every live replica of the rank
// that is not set aside must have it before it can have any effect.
func (w *jobStates) checkShown(st state, i int, pt uint64) error {
	v, t := w.current(st), w.faultsOf(st)
	for j, q := range w.ids {
		l := w.local(st, j)
		if q.Rank == w.ids[i].Rank && v.Counts(q) && !t.stopped(j) && l.logComplete && !l.decided[pt] {
			return fmt.Errorf("R4: %v sees the outcome of point %d before %v has it", w.ids[i], pt, q)
		}
	}
	return nil
}

// judge checks the promises in a state.
func (w *jobStates) judge(st state) error {
	v, t := w.current(st), w.faultsOf(st)
	var decider view.Process
	decided := false
	for i, p := range w.ids {
		if t.stopped(i) || !v.Live(p) {
			continue
		}
		l := w.local(st, i)
		if v.Counts(p) {
			if err := w.checkKnown(st, p.Rank, l); err != nil {
				return err
			}
		}
		if l.decider && decided && decider.Rank == p.Rank {
			return fmt.Errorf("R4: %v and %v both decide", decider, p)
		}
		if l.decider {
			decider, decided = p, true
		}
		for j, q := range w.ids {
			if q.Rank != p.Rank && v.Live(q) && !t.stopped(j) {
				if err := checkKept(p, q, l, w.local(st, j)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkKnown checks R4 for a process that is as well informed as its rank: it has every outcome that any program
// of the rank has seen.
func (w *jobStates) checkKnown(st state, rank int, l *local) error {
	seen := len(w.seen.all[st[atSeen]][rank])
	for _, o := range w.scripts[rank] {
		if !o.shows() {
			continue
		}
		if seen == 0 {
			break
		}
		seen--
		if o.kind != opRecv && l.logComplete && !l.decided[o.index] {
			return fmt.Errorf("R4: %v lacks the outcome of point %d, which its rank has seen", w.ids[l.at], o.index)
		}
	}
	return nil
}

// checkKept checks the first half of R3: p keeps what q lacks.
func checkKept(p, q view.Process, sender, receiver *local) error {
	if !receiver.logComplete {
		return nil // q will get the messages from the message log
	}
	for _, context := range []uint32{named, wild} {
		out := sender.flows[stream{context, q.Rank}]
		in := receiver.flows[stream{context, p.Rank}]
		if out.sent > in.received && out.kept > in.received+1 {
			return fmt.Errorf("R3: %v has forgotten message %d to rank %d in context %d, which %v lacks",
				p, in.received+1, q.Rank, context, q)
		}
	}
	return nil
}

// judgeEnd checks the promises in a final state. Every live process must have run its whole program (R2)
// and keep nothing (the second half of R3). Each rank must have a replica that counts (R7).
func (w *jobStates) judgeEnd(st state) error {
	v, t := w.current(st), w.faultsOf(st)
	for rank := range w.n {
		if _, ok := v.OutputLeader(rank); !ok && w.loses {
			return nil
		} else if !ok {
			return fmt.Errorf("R7: rank %d has no replica", rank)
		}
	}
	for i, p := range w.ids {
		if t.stopped(i) || !v.Live(p) {
			continue
		}
		switch l := w.local(st, i); {
		case !l.done:
			return fmt.Errorf("R2: %v never finishes its program", p)
		case l.keeps > 0:
			return fmt.Errorf("R3: %v retains %d bytes forever", p, l.keeps)
		case l.joining:
			return fmt.Errorf("%v never catches up with its rank", p)
		case !v.Counts(p):
			return fmt.Errorf("%v stays aside forever", p)
		case v.IsMaster(p) && !l.decider:
			return fmt.Errorf("R4: %v never decides", p)
		}
	}
	return nil
}
