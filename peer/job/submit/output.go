package submit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// outputs decides which output of the processes the user gets: each record of a rank once, from
// the rank's output leaders (R6). It starts no goroutine and reads no clock; the caller emits what
// it returns.
type outputs struct {
	emission       *job.Emission
	has            [][2]uint64              // by rank and stream: number of records that the user has
	unacknowledged map[int]bool             // ranks whose output was shown but not yet acknowledged to the peers
	leaders        map[view.Process]bool    // processes that have been their rank's output leader (view.OutputLeader)
	early          backlogs                 // output of processes that are not output leaders yet
	ended          map[view.Process][2]bool // streams that the process has closed
	draining       map[int][]draining       // by rank: processes that have closed both, until drained returns them
	ahead          bool                     // the job does not wait for the user to have the output of a process that has ended
	withheld       withheld
	printed        []transcript // by rank: standard output that the user gets; nil: job without replicas
}

// draining is a process that has closed its streams after the given numbers of records.
type draining struct {
	process view.Process
	ends    [2]uint64
}

// newOutputs returns the outputs of a job that starts with view v.
func newOutputs(v view.View) *outputs {
	o := &outputs{
		emission: job.NewEmission(v.N), has: make([][2]uint64, v.N), unacknowledged: make(map[int]bool),
		leaders: make(map[view.Process]bool), early: make(backlogs),
		ended: make(map[view.Process][2]bool), draining: make(map[int][]draining), withheld: make(withheld),
	}
	if v.R > 1 {
		o.printed = newTranscripts(v.N)
	}
	o.recordLeaders(v)
	return o
}

// resume continues after the given records of each rank's streams, which an earlier process has
// shown.
func (o *outputs) resume(shown [][2]uint64, printed []transcript) {
	o.emission = job.ResumeEmission(shown)
	o.has = slices.Clone(shown)
	if o.printed != nil {
		o.printed = printed
	}
}

// add adds an output message of process p, and returns the event with its new records, or nil. It also
// accepts records of a former output leader: the process may become the output leader again, and
// later records continue the earlier ones. skipped is the number of records before these that the user has
// received from an earlier process, according to the peer only; see job.ResumeEmission. After an error, the peer has
// broken the protocol.
func (o *outputs) add(h received, p view.Process) (event *Event, skipped uint64, err error) {
	if !o.leaders[p] { // its peer may have received the view in which it is one, and sends the output once
		if err := o.early.add(p, h); err != nil {
			return nil, 0, fmt.Errorf("output of %v, which is not an output leader: %w", p, err)
		}
		return nil, 0, nil
	}
	m := h.msg.GetOutput()
	s := job.Stream(m.Stream)
	if s != job.Stdout && s != job.Stderr {
		return nil, 0, fmt.Errorf("output stream %d", m.Stream)
	}
	ended := o.ended[p]
	before, has := o.emission.Next(p.Rank, s), &o.has[p.Rank][s-1]
	if sent, _ := job.WholeRecords(m.Data); ended[s-1] && m.First+sent > before {
		return nil, 0, fmt.Errorf("output of %v after its end", p)
	}
	fresh, records, ok := o.emission.Add(p, s, m.First, m.Data)
	next := o.emission.Next(p.Rank, s)
	if !ok {
		return nil, 0, fmt.Errorf("output of %v from record %d, want %d", p, m.First, next)
	}
	if records > 0 || m.End {
		delete(o.withheld, p)
	}
	if *has == before {
		*has = next - records // more than before only in a resumed job, see ResumeEmission
	}
	if records > 0 {
		e := outputEvent(p.Rank, s, fresh)
		e.Record, e.Records = next, records
		event = &e
		if s == job.Stdout && o.printed != nil {
			o.printed[p.Rank].add(next, records, fresh)
		}
	}
	if m.End && !ended[s-1] { // a process that has become the output leader again may repeat the end
		ended[s-1] = true
		o.end(p, ended)
	}
	return event, next - records - before, nil
}

// skippedNote returns the warning that a peer skips count records of process p, the last of which has number next.
func skippedNote(p view.Process, s job.Stream, next, count uint64, peer string) string {
	name := "standard output"
	if s == job.Stderr {
		name = "standard error"
	}
	return fmt.Sprintf("lines %d to %d of the %s of rank %d are not printed: peer %s says that an earlier p2prun has printed them, but the record of the job does not; if you do not have them, exclude that peer (--not-peer) and start the job again",
		next-count+1, next, name, p.Rank, peer)
}

// end records which streams a process has closed.
func (o *outputs) end(p view.Process, ended [2]bool) {
	o.ended[p] = ended
	if ended == [2]bool{true, true} {
		o.draining[p.Rank] = append(o.draining[p.Rank], draining{p, o.next(p.Rank)})
	}
}

// next returns how many records of each stream of a rank have arrived.
func (o *outputs) next(rank int) [2]uint64 {
	return [2]uint64{o.emission.Next(rank, job.Stdout), o.emission.Next(rank, job.Stderr)}
}

// drained returns the processes of a rank that have closed their streams and whose output the user has
// completely, each once.
func (o *outputs) drained(rank int) (all []view.Process) {
	has := o.has[rank]
	o.draining[rank] = slices.DeleteFunc(o.draining[rank], func(d draining) bool {
		if !o.ahead && (has[0] < d.ends[0] || has[1] < d.ends[1]) {
			return false
		}
		all = append(all, d.process)
		return true
	})
	return all
}

// takeEarly returns the queued output of processes that have become output leaders.
func (o *outputs) takeEarly() (out []received) {
	for p := range o.early {
		if o.leaders[p] {
			out = append(out, o.early.take(p)...)
		}
	}
	return out
}

// recordLeaders records the output leaders of a view.
func (o *outputs) recordLeaders(v view.View) {
	for rank := range v.N {
		if p, ok := v.OutputLeader(rank); ok {
			o.leaders[p] = true
		}
	}
}

// outputLeaders returns the processes of v that are, or have been, the output leader of a rank.
func (o *outputs) outputLeaders(v view.View, rank int) []view.Process {
	return slices.DeleteFunc(v.Processes(), func(p view.Process) bool { return p.Rank != rank || !o.leaders[p] })
}

// owes reports whether the next output of a process has to come from its peer: the process has not
// closed its streams, and the user has read everything so far. Otherwise flow control may keep the
// peer from sending more.
func (o *outputs) owes(p view.Process) bool {
	return o.has[p.Rank] == o.next(p.Rank) && o.ended[p] != [2]bool{true, true}
}

// shown records the last records that the user has of some streams. It returns the processes whose
// output the user has completely.
func (o *outputs) shown(last map[job.Source]uint64) (drained []view.Process) {
	for from, record := range last {
		o.has[from.Rank][from.Stream-1] = record
		o.unacknowledged[from.Rank] = true
		drained = append(drained, o.drained(from.Rank)...)
	}
	return drained
}

// emitted returns the message that reports how many records of a rank's output the user has.
func (o *outputs) emitted(rank int) *jobpb.ToPeer {
	has := o.has[rank]
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{
		Rank: uint32(rank), Stdout: has[0], Stderr: has[1],
	}}}
}

// printedBy returns the part of a rank's standard output that the user has received, with the unfinished
// last line that the user would get if the job were over with view v. ok is false if that is unknown.
func (o *outputs) printedBy(v view.View, rank int) (p job.Printed, ok bool) {
	return o.printed[rank].with(o.emission.Tail(v, rank, job.Stdout))
}

// tails returns the unfinished last lines, which no process will finish. All but the last of a
// stream get a line end, so that they do not run together.
func (o *outputs) tails(v view.View) (all []Event) {
	for _, s := range []job.Stream{job.Stdout, job.Stderr} {
		var tails []Event
		for rank := range v.N {
			if data := o.emission.Tail(v, rank, s); data != nil {
				tails = append(tails, outputEvent(rank, s, data))
			}
		}
		for i := range len(tails) - 1 {
			tails[i].Data = append(tails[i].Data, '\n')
		}
		all = append(all, tails...)
	}
	return all
}

func outputEvent(rank int, s job.Stream, data []byte) Event {
	return Event{Kind: OutputEvent, Rank: rank, Stream: s, Data: data}
}

// withheld records, for each output leader that has ended, since when its output has made no
// progress. A rank is done once the user has all its output, so a peer that withholds some would
// delay the job forever (V4).
type withheld map[view.Process]time.Time

// overdue returns those of the given processes whose output has made no progress for at least the
// time that most allows.
func (w withheld) overdue(owing []view.Process, most func(view.Process) time.Duration, now time.Time) (out []view.Process) {
	maps.DeleteFunc(w, func(p view.Process, _ time.Time) bool { return !slices.Contains(owing, p) })
	for _, p := range owing {
		since, known := w[p]
		switch {
		case !known:
			w[p] = now
		case now.Sub(since) >= most(p):
			out = append(out, p)
		}
	}
	return out
}

var errWithheld = errors.New("its process has ended, but the rest of its output does not arrive")
