package job

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// A flow is one stream of a rank on its way to the user.
type flow struct {
	shown  uint64 // records that the user has
	unread int    // bytes of output that wait for the user, with their overhead
}

const (
	// maxUnread is how much of a stream may wait for the user. A peer stops
	// reading its program's output at 1 MiB, which the user may have to read
	// first; nobody needs as much as this.
	maxUnread = 4 << 20

	// outputOverhead is counted for each message of output beside its bytes, so
	// that many short ones have a limit too.
	outputOverhead = 40
)

// output handles records that the speaker of a rank wrote. What one sends that
// has spoken is taken too: the word may come back to it, and what follows then
// follows on that.
func (e *execution) output(h heard, p view.Process) *Result {
	if !e.spoke[p] {
		return e.untimely(h, p)
	}
	l, m := h.link, h.msg.GetOutput()
	s := Stream(m.Stream)
	if s != Stdout && s != Stderr {
		return e.breach(l, fmt.Errorf("output stream %d", m.Stream))
	}
	ended := e.ended[p]
	fresh, records, ok := e.emission.Add(p, s, m.First, m.Data)
	next := e.emission.Next(p.Rank, s)
	if !ok {
		return e.breach(l, fmt.Errorf("output of %v from record %d, want %d", p, m.First, next))
	}
	if ended[s-1] && records > 0 {
		return e.breach(l, fmt.Errorf("output of %v after its end", p))
	}
	if records > 0 || m.End {
		delete(e.withheld, p)
	}
	f := &e.flows[p.Rank][s-1]
	if records > 0 {
		event := outputEvent(p.Rank, s, fresh)
		event.Record, event.Records = next, records
		if s == Stdout && e.accounts != nil {
			e.printed[p.Rank].add(next, records, fresh)
		}
		i := item{event: event, weight: len(fresh) + outputOverhead}
		f.unread += i.weight
		e.j.printer.print(i)
	}
	if f.unread > maxUnread {
		return e.breach(l, fmt.Errorf("%d bytes of output of %v without an acknowledgement", f.unread, p))
	}
	if !m.End || ended[s-1] { // it may say so once more when the word has come back to it
		return nil
	}
	ended[s-1] = true
	e.ended[p] = ended
	if ended[0] && ended[1] {
		e.j.printer.print(item{drained: &p})
	}
	return nil
}

// untimely keeps what a process sends that has not spoken: its peer may have heard before
// this one of a view in which it does, and sends it once.
func (e *execution) untimely(h heard, p view.Process) *Result {
	kept, err := e.unspoken[p].add(h)
	if err != nil {
		return e.breach(h.link, fmt.Errorf("output of %v, which does not speak: %w", p, err))
	}
	e.unspoken[p] = kept
	return nil
}

// hearUntimely takes what has been kept of those that speak by now.
func (e *execution) hearUntimely() *Result {
	for p, kept := range e.unspoken {
		if !e.spoke[p] {
			continue
		}
		delete(e.unspoken, p)
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

// hearSpeakers takes note of who speaks in a view.
func (e *execution) hearSpeakers(v view.View) {
	for rank := range v.N {
		if p, ok := v.Speaker(rank); ok {
			e.spoke[p] = true
		}
	}
}

func outputEvent(rank int, s Stream, data []byte) Event {
	return Event{Kind: OutputEvent, Rank: rank, Stream: s, Data: data}
}

// printRest gives the user what was kept with the result, less the records that came later
// to be shown.
func (j *run) printRest(shown [][2]uint64) {
	for _, o := range j.keeper.kept.Rest {
		event := outputEvent(o.Rank, o.Stream, o.Data)
		event.Record, event.Records = o.Record, o.Records
		if event, ok := event.After(shown[o.Rank][o.Stream-1]); ok {
			j.emit(event)
		}
	}
}

// shown handles what has reached the user.
func (e *execution) shown() *Result {
	for _, i := range e.j.printer.receipts() {
		if i.drained != nil {
			if r := e.apply(e.watch.Drained(*i.drained)); r != nil {
				return r
			}
			continue
		}
		f := &e.flows[i.event.Rank][i.event.Stream-1]
		f.shown = i.event.Record
		f.unread -= i.weight
		e.unsaid[i.event.Rank] = true
	}
	return nil
}

// acknowledge lets the peers of a rank drop what the user has got.
func (e *execution) acknowledge() {
	for rank := range e.unsaid {
		m := e.emitted(rank)
		for k := range e.watch.View().R {
			if l := e.runsOn[view.Process{Rank: rank, Replica: k}]; l != nil {
				l.say(m)
			}
		}
		delete(e.unsaid, rank)
	}
}

// emitted says what the user has of a rank's output.
func (e *execution) emitted(rank int) *jobpb.ToPeer {
	f := e.flows[rank]
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{
		Rank: uint32(rank), Stdout: f[0].shown, Stderr: f[1].shown,
	}}}
}

// printTails gives the user the unfinished last lines, now that nobody will
// finish them. Each but the last is ended, so that they do not run together.
func (e *execution) printTails() {
	for _, s := range []Stream{Stdout, Stderr} {
		var tails []Event
		for rank := range e.j.req.N {
			if data := e.emission.Tail(e.watch.View(), rank, s); data != nil {
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
