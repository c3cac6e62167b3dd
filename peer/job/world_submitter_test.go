package job

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// hear lets the submitter handle the next message of h.
func (w *world) hear(h *host, _ int) error {
	m := h.said[h.heard]
	h.heard++
	s := w.sub
	if !h.known {
		return w.hearRecruit(h, m)
	}
	switch m.kind {
	case saysInitialized:
		s.entry.Initialized(h.p, w.time())
		return w.follow(Initialized{h.p})
	case saysExited:
		if h.exit.Good() {
			s.entry.Arrived(h.p, w.time())
		}
		return w.follow(Exited{h.p, *h.exit})
	case saysAborted:
		return w.follow(Aborted{h.p, abortStatus, "", hostOf(h.p)})
	case saysAccount:
		if s.state.View().State(h.p) == view.Failed {
			return nil
		}
		w.accounts().Add(h.p, Account{Digested: true, Printed: printedAs(h.output(0))})
		return w.judge(false)
	case saysAhead:
		return w.follow(Ahead{h.p})
	case saysLeaves:
		return w.follow(Leaves{h.p})
	case saysStalled:
		if s.resumed || s.cut {
			return nil
		}
		return w.follow(Unresponsive{m.about})
	case saysUpToDate:
		return w.follow(UpToDate{m.about, m.since, m.term})
	}
	rank := h.p.Rank
	out := s.state.Apply(Healed{h.p})
	if out.Healed && s.healing.Served(rank) {
		s.healing.Healed(rank, w.now)
	}
	return w.carryOut(out)
}

// hearRecruit handles a message of a process that has not been introduced to the other peers.
func (w *world) hearRecruit(h *host, m message) error {
	out := w.sub.state.Apply(Recruited{h.p})
	if m.kind != saysInitialized || out.Propose == nil {
		w.giveUp(h)
		return nil
	}
	h.known = true
	return w.carryOut(out)
}

// giveUp releases a recruit that has not been introduced.
func (w *world) giveUp(h *host) {
	w.sub.healing.GaveUp(h.p.Rank, w.now)
	i := w.hostOf(h.p)
	w.sub.lost[i], w.sub.leaders[i], w.sub.drained[i] = false, false, false
	*h = host{alive: h.alive}
}

// abortStatus is the status that a program passes to Abort.
const abortStatus = 3

func (w *world) time() time.Time { return time.Unix(0, 0).Add(w.now) }

// deliver passes the output of h that has not been sent on this stream.
func (w *world) deliver(h *host, _ int) error {
	data := []byte(h.output(h.sent))
	fresh, records, ok := w.sub.emission.Add(h.p, Stdout, uint64(h.sent), data)
	if !ok {
		return fmt.Errorf("R6: the output of %v from record %d is refused", h.p, h.sent)
	}
	whole, _ := WholeRecords(data)
	h.sent += int(whole)
	h.ended = h.isHeard(saysExited)
	rank := h.p.Rank
	if w.repeats[rank] && records > 0 { // it was shown, and not recorded
		w.repeats[rank] = false
		if at := w.sub.emission.Next(rank, Stdout) - records; at == w.kept[rank][0] {
			w.user[rank] = w.user[rank][:RecordsLen([]byte(w.user[rank]), at)]
		}
	}
	w.user[rank] += string(fresh)
	w.kept[rank][0] = w.sub.emission.Next(rank, Stdout)
	if all := strings.Join(text, ""); !w.spoilt(rank) && !strings.HasPrefix(all, w.user[rank]) {
		return fmt.Errorf("R6: the user has received %q of rank %d, which wrote %q", w.user[rank], rank, all)
	}
	return nil
}

// spoilt reports whether a process of a rank computes something else.
func (w *world) spoilt(rank int) bool {
	return slices.ContainsFunc(w.rankOf(rank), func(h *host) bool { return h.wrong })
}

// canLose reports whether the submitter can learn that a peer has ended. A resumed submitter leaves peers with a live
// process to the other peers.
func (w *world) canLose(h *host, i int) bool {
	switch {
	case w.sub == nil || !h.used || h.alive || w.sub.lost[i]:
		return false
	case w.sub.resumed && h.known:
		return w.caughtUp() && w.sub.learned == len(w.log) && !w.sub.state.View().Live(h.p) && w.sub.state.View().State(h.p) != view.Vacant
	}
	return true
}

// lose gives up a peer.
func (w *world) lose(h *host, i int) error {
	w.sub.lost[i] = true
	switch {
	case !h.known:
		w.giveUp(h)
		return nil
	case w.sub.state.View().State(h.p) == view.Vacant: // carryOut fails it once it has joined
		return nil
	}
	return w.follow(Lost{[]view.Process{h.p}, "is lost"})
}

// caughtUp reports whether a resumed submitter has everything that the live peers know.
func (w *world) caughtUp() bool {
	if w.sub == nil || !w.sub.resumed {
		return false
	}
	present := false
	for _, h := range w.hosts {
		if h.used && h.known && h.alive {
			if present = true; !h.connected || h.heard < h.expected && w.sub.state.View().State(h.p) != view.Vacant {
				return false
			}
		}
	}
	return present
}

// learn applies the next change of the log.
func (w *world) learn() error {
	s := w.sub
	c := w.log[s.learned]
	s.learned++
	if c.To == view.Failed {
		s.state.Apply(Accused{c.Process, "failed, according to the peers"})
	}
	if err := w.follow(Committed{c}); err != nil {
		return err
	}
	v := view.New(w.n, w.r)
	for _, c := range w.log[:s.learned] {
		v, _ = c.Apply(v)
	}
	if !reflect.DeepEqual(v, s.state.View()) {
		return fmt.Errorf("V1: the submitter has %+v, and the log leads to %+v", s.state.View(), v)
	}
	return nil
}

// agree appends a request to the log if it changes the view.
func (w *world) agree(i int) error {
	c := w.pending[i].change
	w.pending = slices.Delete(w.pending, i, i+1)
	next, changed := c.Apply(w.view)
	if !changed {
		return nil
	}
	if c.Leaves() {
		if err := w.checkLeave(c.Process); err != nil {
			return err
		}
	}
	for k := range w.hosts {
		h := &w.hosts[k]
		if h.used && h.p != c.Process && w.view.Live(h.p) && next.State(h.p) == view.Failed {
			h.stale = true
		}
	}
	w.log, w.view = append(w.log, c), next
	for k := range w.hosts {
		h := &w.hosts[k]
		h.spoke = h.spoke || h.used && next.IsOutputLeader(h.p)
	}
	return nil
}

// follow passes an event to the State and carries out its effects.
func (w *world) follow(e Event) error {
	before := w.sub.state.View().Epoch
	out := w.sub.state.Apply(e)
	if _, agreed := e.(Committed); !agreed && w.sub.state.View().Epoch != before {
		return fmt.Errorf("V1: %T changes the view, which has not been agreed on", e)
	}
	return w.carryOut(out)
}

func (w *world) carryOut(out Effects) error {
	s := w.sub
	if out.View != nil {
		w.recordLeaders(s)
	}
	if out.Begin {
		if err := w.checkBegin(); err != nil {
			return err
		}
		w.begun = true
	}
	for _, c := range out.Propose {
		if err := w.checkRequest(c); err != nil {
			return err
		}
		if r := (request{change: c}); !slices.Contains(w.pending, r) {
			w.pending = append(w.pending, r)
		}
	}
	if err := w.checkReplicas(); err != nil {
		return err
	}
	if r := out.Result; r != nil && r.Status != StatusOK {
		return w.end(*r)
	} else if r != nil && s.done {
		return fmt.Errorf("the job ends twice")
	} else if r != nil {
		s.done = true
	}
	if out.Joined != nil {
		return w.joined(w.hostOf(*out.Joined))
	}
	return nil
}

// joined handles the messages of a process that has joined. The submitter of a resumed job has received them before.
func (w *world) joined(i int) error {
	h := &w.hosts[i]
	if w.sub.lost[i] {
		return w.follow(Lost{[]view.Process{h.p}, "was lost while it joined"})
	}
	for w.sub.resumed && h.connected && h.heard < h.expected && w.result == nil {
		if err := w.hear(h, i); err != nil {
			return err
		}
	}
	return nil
}

// accounts returns the comparison of the accounts that the submitter has.
func (w *world) accounts() *Accounts {
	s := w.sub
	return &Accounts{
		of: s.of, odd: s.odd, Counting: s.state.Counting, Name: func(p view.Process) string { return "P" + p.String() },
		Shown: func(rank int) (Printed, bool) { return printedAs(w.text(rank)), !w.repeats[rank] },
	}
}

// text returns the output of a rank that the user would have if the job were over.
func (w *world) text(rank int) string {
	return w.user[rank] + string(w.sub.emission.Tail(w.sub.state.OutputView(), rank, Stdout))
}

// confirming returns the replicas whose accounts confirm the answer.
func (w *world) confirming() []view.Process {
	return slices.DeleteFunc(w.sub.state.Working(), func(p view.Process) bool { return w.sub.lost[w.hostOf(p)] })
}

func (w *world) judge(final bool) error {
	if w.r == 1 {
		return nil
	}
	if _, r := w.accounts().Judge(w.n, final); r != nil {
		return w.end(*r)
	}
	return nil
}

// recruiting reports whether a rank is being served.
func (w *world) recruiting(rank int) bool {
	s := w.sub
	return s.search == rank || s.state.Lags(rank) || s.state.JoinPending(rank) || slices.ContainsFunc(w.hosts, func(h host) bool {
		return h.used && !h.known && h.p.Rank == rank
	})
}

// mayHeal reports whether the submitter replaces lost replicas now.
func (w *world) mayHeal() bool {
	return w.sub != nil && w.r > 1 && !w.sub.cut && (!w.sub.resumed || w.caughtUp())
}

// heals reports whether heal has something to do.
func (w *world) heals(*host, int) bool {
	if !w.mayHeal() {
		return false
	}
	s := w.sub
	for rank, a := range s.healing.ranks {
		if s.state.Lacks(rank) != a.lacks || w.recruiting(rank) != a.served {
			return true
		}
	}
	_, ok := s.healing.Next(w.now)
	return ok && s.search < 0 || slices.ContainsFunc(w.hosts, func(h host) bool { return h.used && !h.known && !s.state.Lacks(h.p.Rank) })
}

// heal replaces lost replicas, as package submit does.
func (w *world) heal() error {
	s := w.sub
	for rank := range w.n {
		s.healing.Observe(rank, s.state.Lacks(rank), w.now)
	}
	for i := range w.hosts {
		if h := &w.hosts[i]; h.used && !h.known && !s.state.Lacks(h.p.Rank) {
			w.giveUp(h)
		}
	}
	for rank := range w.n {
		switch served, serving := s.healing.Served(rank), w.recruiting(rank); {
		case served && !serving:
			s.healing.GaveUp(rank, w.now)
		case serving && !served:
			s.healing.Serve(rank)
		}
	}
	rank, ok := s.healing.Next(w.now)
	if !ok || s.search >= 0 {
		return nil
	}
	p, _ := s.state.View().Joiner(rank)
	s.healing.Serve(rank)
	if w.hostOf(p) >= 0 { // the previous process introduced it
		return w.follow(Recruited{p})
	}
	s.search = rank
	return nil
}

// find starts a recruit at a free peer.
func (w *world) find() error {
	s := w.sub
	rank := s.search
	s.search = -1
	p, ok := s.state.View().Joiner(rank)
	i := slices.IndexFunc(w.hosts, func(h host) bool { return !h.used && h.alive })
	if i < 0 || !ok || w.hostOf(p) >= 0 {
		s.healing.GaveUp(rank, w.now)
		return nil
	}
	w.hosts[i] = host{p: p, used: true, alive: true, joining: true, behind: true, connected: true, acked: int(w.kept[rank][0]), sent: int(w.kept[rank][0])}
	return nil
}

// isBackingOff reports whether a rank waits for the next attempt to find a peer, and one is free.
func (w *world) isBackingOff() bool {
	return slices.ContainsFunc(w.sub.healing.ranks, func(a ailing) bool { return a.lacks && !a.served && a.next > w.now }) &&
		slices.ContainsFunc(w.hosts, func(h host) bool { return !h.used && h.alive })
}

// wait lets a long time pass.
func (w *world) wait() error {
	w.now += time.Hour
	s := w.sub
	if s.state.Begun() {
		return nil
	}
	v := s.state.View()
	if late := s.entry.Overdue(v, time.Minute, w.time()); len(late) > 0 {
		return w.follow(Lost{late, "did not call mpj.Init"})
	}
	if missing, waiting, ok := s.entry.Undecided(v, time.Minute, w.time()); ok {
		return w.end(Result{Status: StatusDiverged, Message: fmt.Sprintf("%v and %v have diverged", missing, waiting)})
	}
	return nil
}

// kill ends the process of the submitter. Recruits that it has not recorded are released.
func (w *world) kill() error {
	w.allowed.kills--
	w.sub = nil
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.connected = false; !h.known {
			*h = host{alive: h.alive}
		}
	}
	return nil
}

// cut breaks all streams. Recruits that have not joined are given up.
func (w *world) cut() error {
	w.allowed.cuts--
	w.sub.cut, w.sub.search = true, -1
	for i := range w.hosts {
		h := &w.hosts[i]
		switch h.connected = false; {
		case h.used && !h.known:
			w.giveUp(h)
		case h.used && w.sub.state.View().State(h.p) == view.Vacant:
			h.alive, w.sub.lost[i] = false, true
		}
	}
	return nil
}

// resume starts another process of the submitter.
func (w *world) resume() error {
	w.sub = w.newSubmitter()
	w.sub.resumed = true
	w.sub.state.Apply(Resumed{})
	w.sub.emission = *ResumeEmission(w.kept)
	for i := range w.hosts {
		w.hosts[i].heard, w.hosts[i].ended = 0, false
	}
	return nil
}
