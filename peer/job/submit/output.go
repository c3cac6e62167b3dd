package submit

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A flow is one stream of a rank's output on its way to the user.
type flow struct {
	shown  uint64 // number of records that the user has
	unread int    // bytes of output that the user has yet to read, with their overhead
}

const (
	// maxUnread limits the bytes of a stream that may wait for the user. A peer stops reading its
	// program's output at 1 MiB, which the user may have to read first, so an honest peer needs
	// less.
	maxUnread = 4 << 20

	// outputOverhead is added to the size of each output message, so that many short ones are
	// limited too.
	outputOverhead = 40
)

// output handles records that the output leader of a rank wrote. It also accepts records of a
// former output leader: the process may become the output leader again, and later records continue
// the earlier ones.
func (e *execution) output(h received, p view.Process) *job.Result {
	if !e.wasOutputLeader[p] {
		return e.queueEarlyOutput(h, p)
	}
	l, m := h.link, h.msg.GetOutput()
	s := job.Stream(m.Stream)
	if s != job.Stdout && s != job.Stderr {
		return e.protocolError(l, fmt.Errorf("output stream %d", m.Stream))
	}
	ended := e.ended[p]
	fresh, records, ok := e.emission.Add(p, s, m.First, m.Data)
	next := e.emission.Next(p.Rank, s)
	if !ok {
		return e.protocolError(l, fmt.Errorf("output of %v from record %d, want %d", p, m.First, next))
	}
	if ended[s-1] && records > 0 {
		return e.protocolError(l, fmt.Errorf("output of %v after its end", p))
	}
	if records > 0 || m.End {
		delete(e.withheld, p)
	}
	f := &e.flows[p.Rank][s-1]
	if records > 0 {
		event := outputEvent(p.Rank, s, fresh)
		event.Record, event.Records = next, records
		if s == job.Stdout && e.accounts != nil {
			e.printed[p.Rank].add(next, records, fresh)
		}
		i := item{event: event, weight: len(fresh) + outputOverhead}
		f.unread += i.weight
		e.j.printer.print(i)
	}
	if f.unread > maxUnread {
		return e.protocolError(l, fmt.Errorf("%d bytes of output of %v without an acknowledgement", f.unread, p))
	}
	if !m.End || ended[s-1] { // a process that has become the output leader again may repeat the end
		return nil
	}
	ended[s-1] = true
	e.ended[p] = ended
	if ended[0] && ended[1] {
		e.j.printer.print(item{drained: &p})
	}
	return nil
}

// queueEarlyOutput queues the output of a process that has not been an output leader. Its peer may
// have received the view in which it is one before the submitter did, and sends the output once.
func (e *execution) queueEarlyOutput(h received, p view.Process) *job.Result {
	kept, err := e.earlyOutput[p].add(h)
	if err != nil {
		return e.protocolError(h.link, fmt.Errorf("output of %v, which is not an output leader: %w", p, err))
	}
	e.earlyOutput[p] = kept
	return nil
}

// handleEarlyOutput handles the queued output of processes that have become output leaders.
func (e *execution) handleEarlyOutput() *job.Result {
	for p, kept := range e.earlyOutput {
		if !e.wasOutputLeader[p] {
			continue
		}
		delete(e.earlyOutput, p)
		for _, h := range kept.said {
			if h.link.err != nil {
				break
			}
			if r := e.output(h, p); r != nil {
				return r
			}
		}
	}
	return nil
}

// recordOutputLeaders records the output leaders of a view.
func (e *execution) recordOutputLeaders(v view.View) {
	for rank := range v.N {
		if p, ok := v.Speaker(rank); ok {
			e.wasOutputLeader[p] = true
		}
	}
}

func outputEvent(rank int, s job.Stream, data []byte) Event {
	return Event{Kind: OutputEvent, Rank: rank, Stream: s, Data: data}
}

// printRest emits the output that was kept with the result, except records that were shown later.
func (j *run) printRest(shown [][2]uint64) {
	for _, o := range j.keeper.kept.Rest {
		event := outputEvent(o.Rank, o.Stream, o.Data)
		event.Record, event.Records = o.Record, o.Records
		if event, ok := event.After(shown[o.Rank][o.Stream-1]); ok {
			j.emit(event)
		}
	}
}

// shown handles the printer's receipts for output that has reached the user.
func (e *execution) shown() *job.Result {
	for _, i := range e.j.printer.receipts() {
		if i.drained != nil {
			if r := e.apply(e.state.Drained(*i.drained)); r != nil {
				return r
			}
			continue
		}
		f := &e.flows[i.event.Rank][i.event.Stream-1]
		f.shown = i.event.Record
		f.unread -= i.weight
		e.unacknowledged[i.event.Rank] = true
	}
	return nil
}

// acknowledge tells the peers of each rank which output the user has, so that they drop it.
func (e *execution) acknowledge() {
	for rank := range e.unacknowledged {
		m := e.emitted(rank)
		for k := range e.state.View().R {
			if l := e.peers.runsOn[view.Process{Rank: rank, Replica: k}]; l != nil {
				l.send(m)
			}
		}
		delete(e.unacknowledged, rank)
	}
}

// emitted returns the message that reports how many records of a rank's output the user has.
func (e *execution) emitted(rank int) *jobpb.ToPeer {
	f := e.flows[rank]
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{
		Rank: uint32(rank), Stdout: f[0].shown, Stderr: f[1].shown,
	}}}
}

// printTails emits the unfinished last lines, which no process will finish. All but the last get a
// line end, so that they do not run together.
func (e *execution) printTails() {
	for _, s := range []job.Stream{job.Stdout, job.Stderr} {
		var tails []Event
		for rank := range e.j.req.N {
			if data := e.emission.Tail(e.state.View(), rank, s); data != nil {
				tails = append(tails, outputEvent(rank, s, data))
			}
		}
		for i, t := range tails {
			if i < len(tails)-1 {
				t.Data = append(t.Data, '\n')
			}
			e.j.emit(t)
		}
	}
}
