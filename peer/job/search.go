package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A finding is what came of a search for a peer that can run one more process.
type finding struct {
	rank int
	link *link // to it; nil: there is none
	err  error // why
}

// seek looks for a peer that can run one more replica of a rank. There is one
// search at a time, so that the job never holds more slots than it can use.
func (e *execution) seek(rank int) {
	p, ok := e.watch.View().Joiner(rank)
	if !ok { // it has had too many
		e.healing.GaveUp(rank, e.elapsed())
		return
	}
	e.healing.Serve(rank)
	if l := e.runsOn[p]; l != nil { // the process that was here before has told some that it joins
		e.letIn(l, p, e.watch.Join(p))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.search, e.searched = cancel, rank
	without := e.unwanted()
	slots := 1 << min(e.healing.Failed(rank), 6) // one is found soonest, but its peer may refuse
	others, machines := e.domains(rank), e.slotMachines(rank)
	go func() { // ends with its finding, soon after ctx does
		l, err := e.recruit(ctx, p, others, machines, without, slots)
		e.found <- finding{rank, l, err}
	}()
}

// unwanted are the peers that take part in the job already, and those that were
// of no use a moment ago.
func (e *execution) unwanted() map[p2ppeer.ID]bool {
	out := maps.Clone(e.j.excluded)
	if e.adopted != nil { // its number means the process that was there before
		out[e.j.s.cfg.Host.ID()] = true
	}
	for _, l := range e.links {
		if l.err == nil {
			out[l.peer] = true
		}
	}
	now := time.Now()
	for p := range e.avoided {
		if e.avoided.Avoids(p, now) {
			out[p] = true
		}
	}
	return out
}

var errNoOther = errors.New("no other peer has a slot")

// recruit holds a slot for process p at a peer that is not in without and on none of the machines, and opens
// a control stream to it. The search ends when so many slots are found; of those it takes one in another failure
// domain than those of p's rank, if it can. It runs beside the goroutine that owns e.
func (e *execution) recruit(ctx context.Context, p view.Process, others []reservation.Domain, machines []string, without map[p2ppeer.ID]bool, slots int) (*link, error) {
	s := e.j.s
	candidates, err := e.candidates(ctx, without, slots)
	if err != nil {
		return nil, err
	}
	asking, cancel := lingering(ctx, s.waits.answers)
	defer cancel()
	reserved, err := reservation.Reserve(asking, s.holder, reservation.Apart(candidates, others), reservation.Need{
		Job: e.j.spec.ID, N: 1, R: 1, Since: e.j.spec.Created, Kinds: e.j.kinds(), NotOn: machines,
	})
	if err != nil {
		return nil, err
	}
	l := newLink(reserved.Placements[0], p)
	l.recruit = &recruit{process: p, heard: time.Now()}
	if err := l.open(ctx, s.cfg.Host, e.inbox, e.done); err != nil {
		l.err = fmt.Errorf("open a control stream: %w", err)
	}
	return l, nil
}

// candidates returns the peers outside without that a search finds, which ends as soon as it has found
// the given number of slots.
func (e *execution) candidates(ctx context.Context, without map[p2ppeer.ID]bool, slots int) ([]reservation.Candidate, error) {
	filter := e.j.req.Filter
	filter.Not = slices.Concat(filter.Not, slices.Collect(maps.Keys(without)))
	found, _, err := e.j.s.cfg.Discovery.Candidates(ctx, discovery.Need{Slots: slots, PerPeer: 1, Filter: filter})
	if err != nil {
		return nil, err
	}
	candidates := e.j.eligible(found, make(considered))
	if len(candidates) == 0 {
		return nil, errNoOther
	}
	return candidates, nil
}

// take goes on with what a search has found.
func (e *execution) take(f finding) {
	e.search = nil
	if f.link == nil {
		e.j.log.Debug().Int("rank", f.rank).Err(f.err).Msg("no recruit")
		e.tellWait(f.rank, f.err)
		e.healing.GaveUp(f.rank, e.elapsed())
		return
	}
	l := f.link
	e.links = append(e.links, l)
	if l.err != nil {
		e.giveUp(l, l.err)
		return
	}
	e.serve(l.peer)
	l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: &jobpb.Prepare{
		Spec: e.j.envelope, Key: l.slots.Key[:], Joining: true,
		Processes: []*jobpb.Process{jobpb.FromProcess(l.recruit.process)},
	}}})
}

// tellWait tells the user why a rank still lacks a replica, once for each reason.
func (e *execution) tellWait(rank int, err error) {
	why := "no peer that is asked grants a slot"
	if errors.Is(err, errNoOther) {
		why = "no peer without a part in the job has a free slot"
	}
	if short, ok := errors.AsType[*reservation.ShortageError](err); ok && short.Reasons[reservation.SameMachine] == short.Considered {
		why = "the peers with a free slot are on machines that run the rank already"
	}
	if slices.Contains(e.lacking[rank], why) {
		return
	}
	e.lacking[rank] = append(e.lacking[rank], why)
	e.j.emit(Event{Kind: HealEvent, Rank: rank, Text: fmt.Sprintf("rank %d still lacks a replica: %s; the search goes on", rank, why)})
}

// endSearch ends the search for a peer, if there is one. What it has found all the
// same has to be let go like the others.
func (e *execution) endSearch() {
	if e.search == nil {
		return
	}
	e.search()
	if f := <-e.found; f.link != nil {
		e.links = append(e.links, f.link)
	}
	e.search = nil
}
