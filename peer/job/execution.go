package job

import (
	"context"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// stopTimeout bounds how long peers have for freeing everything of a job that
// is over before the submitter stops waiting for their word.
const stopTimeout = 30 * time.Second

// execution is a job on its peers: the streams to them, and the cores that say
// what follows from what they say. The goroutine of Submitter.Run owns it.
type execution struct {
	j        *run
	reserved *reservation.Reservation
	watch    *Watch
	emission *Emission
	printer  *printer
	links    []*link
	group    []p2ppeer.ID
	detector *faultdetect.Group

	inbox    chan heard
	verdicts chan faultdetect.Verdict
	printed  chan printed
	done     chan struct{} // closed when nobody reads the three above any more
	early    []heard       // said before the last peer had started

	runsOn      map[view.Process]*link
	ended       map[view.Process]streams // that the process has closed
	got         [][2]uint64              // records of each rank's streams that the user has
	unsaid      map[int]bool             // ranks whose peers have not heard of that
	stopServing func()
}

// streams is a set of the two streams of a process.
type streams [2]bool

func newExecution(j *run, reserved *reservation.Reservation) *execution {
	e := &execution{
		j: j, reserved: reserved,
		watch:    NewWatch(j.req.N, j.req.R),
		emission: NewEmission(j.req.N),
		inbox:    make(chan heard),
		verdicts: make(chan faultdetect.Verdict),
		printed:  make(chan printed),
		done:     make(chan struct{}),
		runsOn:   make(map[view.Process]*link),
		ended:    make(map[view.Process]streams),
		got:      make([][2]uint64, j.req.N),
		unsaid:   make(map[int]bool),
	}
	e.printer = newPrinter(j.emit, e.printed, e.done)
	return e
}

// finish runs the job to its end on peers that have all started it.
func (e *execution) finish(ctx context.Context) Result {
	e.announce()
	result := e.follow(ctx)
	if result.Status == StatusOK && len(e.j.req.Outputs) > 0 {
		result = e.collect(ctx)
	}
	e.printTails()
	e.j.phase(Releasing, 0, 0)
	e.stop(result.Message)
	e.close()
	if result.Status == StatusOK && e.watch.Uninitialized() && e.j.req.N*e.j.req.R > 1 {
		e.j.emit(Event{Kind: WarningEvent, Text: "the program never called mpj.Init: each rank did the whole work by itself"})
	}
	return result
}

// announce tells the user where everything runs.
func (e *execution) announce() {
	var placed []Placed
	for _, l := range e.links {
		for _, p := range l.processes {
			placed = append(placed, Placed{Process: p, Peer: l.peer.String()})
		}
	}
	e.j.emit(Event{Kind: PlacedEvent, Placed: placed})
	e.j.phase(Running, 0, 0)
}

// follow handles what happens until the job has a result.
func (e *execution) follow(ctx context.Context) Result {
	for _, h := range e.early {
		if r := e.hear(h); r != nil {
			return *r
		}
	}
	e.early = nil
	for {
		var r *Result
		select {
		case h := <-e.inbox:
			r = e.hear(h)
		case v := <-e.verdicts:
			r = e.judge(v)
		case p := <-e.printed:
			r = e.hasPrinted(p)
		case <-ctx.Done():
			s := stoppedBy(ctx, e.j.req)
			r = &s
		}
		if r != nil {
			return *r
		}
		e.acknowledge()
	}
}

// hear handles one message of a peer, or the end of its stream: a peer whose
// control stream ends is lost to the job, since its side ends the job too.
func (e *execution) hear(h heard) *Result {
	switch {
	case h.link.err != nil:
		return nil // late words of a peer that was given up
	case h.err != nil:
		return e.lose(h.link, "the connection to it broke", h.err)
	}
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Suspect); ok {
		e.suspect(b.Suspect)
		return nil
	}
	p, ok := processOf(h.msg)
	if !ok || e.runsOn[p] != h.link {
		return e.lose(h.link, "it broke the protocol", fmt.Errorf("unexpected %T of process %v", h.msg.Body, p))
	}
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		return e.apply(e.watch.Initialized(p))
	case *jobpb.FromPeer_Output:
		return e.output(h.link, p, b.Output)
	case *jobpb.FromPeer_Exited:
		return e.apply(e.watch.Exited(p, exitOf(b.Exited)))
	case *jobpb.FromPeer_Aborted:
		return e.apply(e.watch.Aborted(p, int(b.Aborted.Code), b.Aborted.Reason))
	}
	return nil
}

// processOf returns the process that a message is about.
func processOf(m *jobpb.FromPeer) (view.Process, bool) {
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Initialized:
		return b.Initialized.Process.View(), true
	case *jobpb.FromPeer_Finalized:
		return b.Finalized.Process.View(), true
	case *jobpb.FromPeer_Output:
		return b.Output.Process.View(), true
	case *jobpb.FromPeer_Exited:
		return b.Exited.Process.View(), true
	case *jobpb.FromPeer_Aborted:
		return b.Aborted.Process.View(), true
	}
	return view.Process{}, false
}

func exitOf(m *jobpb.Exited) Exit {
	return Exit{
		Code: int(m.Code), Signal: m.Signal, Reason: m.Reason,
		Initialized: m.Initialized, Finalized: m.Finalized,
	}
}

// judge handles a verdict of the fault detector.
func (e *execution) judge(v faultdetect.Verdict) *Result {
	if v.State != faultdetect.Failed {
		return nil
	}
	for _, l := range e.links {
		if l.peer == e.group[v.Member] && l.err == nil {
			return e.lose(l, "it has been silent for too long", errLost)
		}
	}
	return nil
}

// suspect has the detector ask a peer that another one reports as failed. The
// report alone fails nobody.
func (e *execution) suspect(m *jobpb.Suspect) {
	for _, id := range e.group {
		if string(id) == string(m.Peer) && id != e.j.s.cfg.Host.ID() {
			e.detector.Report(id)
		}
	}
}

func (e *execution) lose(l *link, why string, err error) *Result {
	e.j.log.Info().Stringer("peer", l.peer).Err(err).Msg("peer lost")
	l.lose(err)
	return e.apply(e.watch.Lost(l.processes, fmt.Sprintf("failed with its peer %s: %s", short(l.peer), why)))
}

// short is a peer ID as people can compare it: its last digits, since all
// begin alike.
func short(p p2ppeer.ID) string {
	s := p.String()
	return "…" + s[max(0, len(s)-6):]
}

// apply carries out what the watch asks for.
func (e *execution) apply(s Step) *Result {
	for _, note := range s.Notes {
		e.j.emit(Event{Kind: ViewEvent, Text: note})
	}
	if s.View != nil {
		e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(*s.View)}})
		e.j.emit(Event{Kind: ViewEvent, View: s.View})
	}
	if s.Begin {
		e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{}}})
	}
	return s.Result
}

// output handles records that the speaker of a rank wrote.
func (e *execution) output(l *link, p view.Process, m *jobpb.Output) *Result {
	if !e.watch.View().Speaks(p) {
		return nil // sent before its peer knew the view
	}
	s := Stream(m.Stream)
	if s != Stdout && s != Stderr {
		return e.lose(l, "it broke the protocol", fmt.Errorf("output stream %d", m.Stream))
	}
	next := e.emission.Next(p.Rank, s)
	fresh, ok := e.emission.Add(p, s, m.First, m.Records)
	if !ok {
		return e.lose(l, "it broke the protocol", fmt.Errorf("output of %v begins at record %d", p, m.First))
	}
	for i, r := range fresh {
		e.printer.print(line{rank: p.Rank, stream: s, record: r, next: next + uint64(i) + 1})
	}
	if ended := e.ended[p]; m.End && !ended[s-1] {
		ended[s-1] = true
		e.ended[p] = ended
		if ended == (streams{true, true}) {
			e.printer.print(line{rank: p.Rank, drained: &p})
		}
	}
	return nil
}

// hasPrinted handles what has reached the user.
func (e *execution) hasPrinted(p printed) *Result {
	for _, l := range p.lines {
		if l.drained != nil {
			if r := e.apply(e.watch.Drained(*l.drained)); r != nil {
				return r
			}
			continue
		}
		e.got[l.rank][l.stream-1] = l.next
		e.unsaid[l.rank] = true
	}
	return nil
}

// acknowledge lets the peers of a rank drop what the user has got.
func (e *execution) acknowledge() {
	for rank := range e.unsaid {
		m := &jobpb.Emitted{Rank: uint32(rank), Stdout: e.got[rank][0], Stderr: e.got[rank][1]}
		for k := range e.j.req.R {
			e.runsOn[view.Process{Rank: rank, Replica: k}].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: m}})
		}
		delete(e.unsaid, rank)
	}
}

// printTails gives the user the unfinished last lines, now that nobody will
// finish them. Each but the last is ended, so that they do not run together.
func (e *execution) printTails() {
	for _, s := range []Stream{Stdout, Stderr} {
		var last *line
		for rank := range e.j.req.N {
			data := e.emission.Tail(e.watch.View(), rank, s)
			if data == nil {
				continue
			}
			if last != nil {
				last.record = append(last.record, '\n')
				e.printer.print(*last)
			}
			last = &line{rank: rank, stream: s, record: data}
		}
		if last != nil {
			e.printer.print(*last)
		}
	}
}

// stop ends the job on every peer and waits until they have said that nothing
// of it is left.
func (e *execution) stop(reason string) {
	e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: reason}}})
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	for e.unstopped() > 0 {
		select {
		case h := <-e.inbox:
			if h.err != nil {
				h.link.lose(h.err)
			} else if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); ok {
				h.link.stopped = true
			}
		case v := <-e.verdicts:
			if v.State == faultdetect.Failed {
				e.loseMember(v.Member)
			}
		case <-e.printed:
		case <-timeout.C:
			e.j.log.Warn().Int("peers", e.unstopped()).Msg("no word from peers that were told to stop; they free the job when they notice its stream is gone")
			return
		}
	}
}

func (e *execution) loseMember(member int) {
	for _, l := range e.links {
		if l.peer == e.group[member] {
			l.lose(errLost)
		}
	}
}

func (e *execution) unstopped() int {
	n := 0
	for _, l := range e.links {
		if l.err == nil && !l.stopped {
			n++
		}
	}
	return n
}

// close ends everything of the execution that is on this side.
func (e *execution) close() {
	close(e.done)
	e.printer.close()
	if e.detector != nil {
		e.detector.Close()
	}
	for _, l := range e.links {
		l.close()
	}
	e.stopServing()
	for _, p := range e.reserved.Placements {
		e.j.s.cfg.Host.ConnManager().Unprotect(p.Peer, e.tag())
	}
	release(e.reserved)
}
