package protected

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/match"
)

// flowLimit is the number of bytes that may be queued, or kept for processes that lack them, before
// a send of an engine with a protocol waits. A higher limit costs memory and hides slow links; a
// lower limit makes every sender wait for the slowest replica.
var flowLimit = 64 << 20 // a variable for tests

// windows ends the sends of this process, each when the receive windows of its destination allow
// that. It also counts the bytes that the program receives, and reports them to their senders. Of the
// engine, it needs the view, the queues and their load, and a way to end a request.
type windows struct {
	p       *transport
	limits  windowLimits
	byRank  []window
	waiting map[messageID]*waitingSend // sends that have started but not ended
	full    []*waitingSend             // the part of waiting that waits for the load to fall
}

// newWindows returns the windows of a process. If it joins a running job, no other replica counts
// yet.
func newWindows(p *transport) windows {
	v, self := p.loop.View(), p.loop.Self()
	w := windows{
		p: p, limits: windowLimitsFor(v.N),
		byRank: make([]window, v.N), waiting: make(map[messageID]*waitingSend),
	}
	for rank := range w.byRank {
		to := &w.byRank[rank]
		to.grow(max(v.R, self.Replica+1)) // the view may not contain this process yet
		for k := range to.known {
			to.known[k] = p.rejoin.complete && rank != self.Rank && v.Live(view.Process{Rank: rank, Replica: k})
		}
	}
	w.byRank[self.Rank].known[self.Replica] = true // this process does not report to itself
	return w
}

// hasRoom reports whether the replicas of the destination of s lack few enough bytes for s to end.
func (w *windows) hasRoom(s *waitingSend) bool {
	if !s.sync && w.p.protocol.Joining() { // other replicas have already sent these messages, and the windows are not known yet
		return true
	}
	v := w.p.loop.View()
	return w.byRank[s.name.rank].done(s, &w.limits, func(k int) bool {
		return v.Live(view.Process{Rank: s.name.rank, Replica: k})
	})
}

// next returns the next send to a rank, without its number.
func (w *windows) next(context uint32, dest, size int) waitingSend {
	return w.byRank[dest].next(messageID{context: context, rank: dest}, size)
}

// number sets the number of s, which is the next send of its context and rank.
func (w *windows) number(s *waitingSend) {
	s.name.seq = w.p.protocol.Sent(s.name.context, s.name.rank) + 1
}

// sendAtOnce sends a message if its send ends at once, and reports whether it was sent.
func (w *windows) sendAtOnce(context uint32, dest int, tag int32, payload []byte) bool {
	s := w.next(context, dest, len(payload))
	if w.p.load() >= flowLimit || !w.hasRoom(&s) {
		return false
	}
	w.p.protect(protection.Message{Context: context, Dest: dest, Tag: tag, Payload: w.p.loop.CopyOf(payload)})
	return true
}

// sendStandard sends m. r is done when the destination has room for m. m is sent in any case, so that
// even a message above the limit is sent.
func (w *windows) sendStandard(r *engine.Request, m protection.Message) {
	s := w.next(m.Context, m.Dest, len(m.Payload))
	w.number(&s)
	if w.p.load() >= flowLimit {
		s.full = true
		w.full = append(w.full, &s)
	}
	w.send(r, &s, m)
}

// sendSynchronously sends m. r is done when m has been matched. A message of this process to itself
// may be matched before protect returns.
func (w *windows) sendSynchronously(r *engine.Request, m protection.Message) {
	s := w.next(m.Context, m.Dest, len(m.Payload))
	s.sync = true
	w.number(&s)
	s.matched = w.p.notices.arrivedEarly(s.name)
	w.send(r, &s, m)
}

// send sends m. r is done when s is done, which may be before send returns. If s is not done, send
// asks for the matches of m: all replicas may have matched m before a notice could arrive.
func (w *windows) send(r *engine.Request, s *waitingSend, m protection.Message) {
	s.request = r
	w.waiting[s.name] = s
	w.p.protect(m)
	if w.settle(s); !s.over {
		w.p.notices.query(s)
	}
}

// settle ends s if it is done.
func (w *windows) settle(s *waitingSend) {
	if !s.full && w.hasRoom(s) {
		w.end(s)
	}
}

func (w *windows) end(s *waitingSend) {
	if s.over {
		return
	}
	s.over = true
	delete(w.waiting, s.name)
	s.request.Finish()
}

// settleAll ends all sends to a rank that are done.
func (w *windows) settleAll(rank int) {
	for _, s := range w.waiting {
		if s.name.rank == rank {
			w.settle(s)
		}
	}
}

// endOf ends the send of r, whose message has been passed to the protocol.
func (w *windows) endOf(r *engine.Request) {
	for _, s := range w.waiting {
		if s.request == r {
			w.end(s)
			return
		}
	}
}

// relieve ends the waits of sends once the load has fallen below flowLimit. It is called while
// frames are written, so it sends none.
func (w *windows) relieve() {
	if len(w.full) == 0 || w.p.load() >= flowLimit {
		return
	}
	for _, s := range w.full {
		s.full = false
		w.settle(s)
	}
	clear(w.full)
	w.full = w.full[:0]
}

// take records that the program has received m. Occasionally it reports the received bytes to the
// replicas of the source.
func (w *windows) take(m *match.Message) {
	from, self := &w.byRank[m.Source], w.p.loop.Self()
	from.received.add(len(m.Payload))
	switch {
	case m.Source == self.Rank:
		from.record(self.Replica, from.received)
		w.settleAll(m.Source)
	case w.p.rejoin.complete && from.due(&w.limits):
		w.report(m.Source)
	}
}

// report reports to the replicas of a rank the number of bytes that this process has received from
// the rank.
func (w *windows) report(rank int) {
	if rank == w.p.loop.Self().Rank {
		return
	}
	w.byRank[rank].reported = w.byRank[rank].received
	for k := range w.p.loop.View().R {
		w.reportTo(view.Process{Rank: rank, Replica: k})
	}
}

func (w *windows) reportTo(to view.Process) {
	w.p.queue(to, takenFrame(w.p.loop.Self().Rank, w.byRank[to.Rank].received))
}

// arrived processes another process's report of received bytes.
func (w *windows) arrived(from view.Process, f *frame.Frame) error {
	t, err := decodeTally(f.Payload)
	if err != nil || !w.p.loop.View().Live(from) || from.Rank == w.p.loop.Self().Rank {
		return err
	}
	w.byRank[from.Rank].record(from.Replica, t)
	w.settleAll(from.Rank)
	return nil
}

// reportAll reports to all ranks the number of bytes that this process, which was new, has received
// from them. From then on the process counts.
func (w *windows) reportAll() {
	for rank := range w.byRank {
		w.report(rank)
	}
}

// reopened repeats the last report to a process after the channel to it was reopened, because the
// report may have been lost.
func (w *windows) reopened(to view.Process) {
	if w.p.rejoin.complete && to.Rank != w.p.loop.Self().Rank {
		w.reportTo(to)
	}
}

// viewChanged makes room for the processes that are new in the view. It reports to them the number of
// bytes that this process has received of the messages that they will send again.
func (w *windows) viewChanged(before view.View) {
	v := w.p.loop.View()
	for rank := range w.byRank {
		w.byRank[rank].grow(v.R)
	}
	for _, p := range v.Processes() {
		if w.p.rejoin.complete && before.State(p) == view.Vacant && v.Live(p) && p.Rank != w.p.loop.Self().Rank {
			w.reportTo(p)
		}
	}
	for _, s := range w.waiting {
		w.settle(s)
	}
}
