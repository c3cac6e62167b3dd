package submit

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
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A finding is the result of a search for a peer that can run one more process.
type finding struct {
	rank  int
	link  *link    // to the peer that was found; nil: none was found
	added *recruit // the process, if the peer already takes part in the job; nil: it does not
	err   error    // why no peer was found
}

// startSearch searches for a peer that can run one more replica of a rank. One search runs at a
// time, so the job never holds more slots than it can use.
func (e *execution) startSearch(rank int) {
	p, ok := e.state.View().Joiner(rank)
	if !ok { // the rank has had too many replicas
		e.healing.GaveUp(rank, e.elapsed())
		return
	}
	e.healing.Serve(rank)
	if l := e.peers.runsOn[p]; l != nil { // the previous process already introduced it
		e.requestJoin(l, p, e.state.Join(p))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.search, e.searched = cancel, rank
	w := vacancy{
		process: p, hosts: e.hosts(p), others: e.j.domains(e.peers.running(e.state.View(), rank)), machines: slotMachines(e.peers.running(e.state.View(), rank)),
		wide: time.Duration(min(e.healing.Failed(rank), mostWidened)) * widened,
	}
	w.without = e.excludedPeers(w.hosts)
	go func() { e.found <- e.recruit(ctx, w) }() // ends with its finding, soon after ctx does
}

// A vacancy describes the slot that a search has to find.
type vacancy struct {
	process  view.Process
	hosts    map[p2ppeer.ID]*link // peers of the job that could run it
	without  map[p2ppeer.ID]bool  // peers that are not asked
	others   []reservation.Domain // failure domains of the rest of its rank
	machines []string             // machines of the rest of its rank
	wide     time.Duration        // how long to look for more than one slot
}

const (
	// searchFor limits one search for peers: a peer that had no free slot may have one now.
	searchFor = 2 * time.Second
	// A search asks all peers, however many slots it finds, for widened times the number of failed
	// attempts (at most mostWidened): the peers that answer first may refuse.
	widened, mostWidened = 100 * time.Millisecond, 10
)

// excludedPeers returns the peers that already take part in the job and are not among the hosts,
// and the peers that were recently lost or could not help.
func (e *execution) excludedPeers(hosts map[p2ppeer.ID]*link) map[p2ppeer.ID]bool {
	out := maps.Clone(e.j.excluded)
	if e.resumption != nil { // in the view group, its number stands for the previous process
		out[e.j.s.cfg.Host.ID()] = true
	}
	for _, l := range e.peers.links {
		if l.err == nil && hosts[l.peer] == nil {
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

// recruit holds a slot for a process, and opens a control stream to its peer if there is none. It
// prefers peers without a part in the job, and among them peers in another failure domain than the
// rest of the rank. It runs concurrently with the goroutine that owns e.
func (e *execution) recruit(ctx context.Context, w vacancy) finding {
	s, f := e.j.s, finding{rank: w.process.Rank}
	candidates, err := e.candidates(ctx, w)
	if err != nil {
		f.err = err
		return f
	}
	asking, cancel := lingering(ctx, s.waits.answers)
	defer cancel()
	candidates = othersFirst(reservation.Apart(candidates, w.others), w.hosts)
	reserved, err := reservation.Reserve(asking, s.holder, candidates, reservation.Need{
		Job: e.j.spec.ID, N: 1, R: 1, Since: e.j.spec.Created, Kinds: e.j.kinds(), NotOn: w.machines,
	})
	if err != nil {
		f.err = err
		return f
	}
	slots := reserved.Placements[0]
	r := &recruit{process: w.process, heard: time.Now(), slots: slots}
	if f.link = w.hosts[slots.Peer]; f.link != nil {
		f.added = r
		return f
	}
	f.link = newLink(slots, w.process)
	f.link.recruit = r
	if err := f.link.open(ctx, s.cfg.Host, e.peers.inbox); err != nil {
		f.link.err = fmt.Errorf("open a control stream: %w", err)
	}
	return f
}

// candidates returns the peers that a search finds.
func (e *execution) candidates(ctx context.Context, w vacancy) ([]reservation.Candidate, error) {
	filter := e.j.req.Filter
	filter.Not = slices.Concat(filter.Not, slices.Collect(maps.Keys(w.without)))
	looking, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	found, _, err := e.j.s.cfg.Discovery.Candidates(looking, discovery.Need{PerPeer: 1, Wide: w.wide, Filter: filter})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	candidates := e.j.eligible(found, make(considered))
	if len(candidates) == 0 {
		return nil, errNoOther
	}
	return candidates, nil
}

// handleFound handles the result of a search.
func (e *execution) handleFound(f finding) {
	e.search = nil
	defer e.heal() // another waiting rank may be next
	if f.link == nil {
		e.j.log.Debug().Int("rank", f.rank).Err(f.err).Msg("no recruit")
		e.tellWait(f.rank, f.err)
		e.healing.GaveUp(f.rank, e.elapsed())
		return
	}
	l := f.link
	if f.added != nil {
		e.addTo(l, f.added)
		return
	}
	e.peers.links = append(e.peers.links, l)
	if l.err != nil {
		e.giveUp(l, l.err)
		return
	}
	e.serve(l.peer)
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: &jobpb.Prepare{
		Spec: e.j.envelope, Key: l.slots.Key[:], Joining: true,
		Processes: []*jobpb.Process{jobpb.FromProcess(l.recruit.process)},
	}}})
}

// tellWait tells the user why a rank still lacks a replica, once per reason.
func (e *execution) tellWait(rank int, err error) {
	why := "no peer that is asked grants a slot"
	if errors.Is(err, errNoOther) {
		why = "no free slot on a peer that does not run it already"
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

// endSearch ends the search for a peer, if one runs. A peer or slot that it has found anyway has to
// be released like the others.
func (e *execution) endSearch() {
	if e.search == nil {
		return
	}
	e.search()
	switch f := <-e.found; {
	case f.added != nil:
		e.recordUnusedSlot(f.added)
	case f.link != nil:
		e.peers.links = append(e.peers.links, f.link)
	}
	e.search = nil
}
