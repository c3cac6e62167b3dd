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
	"github.com/p2pmpi/p2pmpi/peer/job"
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
func (c *recruitment) startSearch(rank int) {
	p, ok := c.state.View().Joiner(rank)
	if !ok { // the rank has had too many replicas
		c.healing.GaveUp(rank, c.j.elapsed())
		return
	}
	c.healing.Serve(rank)
	if l := c.peers.runsOn[p]; l != nil { // the previous process already introduced it
		c.requestJoin(l, p, c.state.Apply(job.Recruited{Process: p}))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.search, c.searched = cancel, rank
	w := vacancy{
		process: p, hosts: c.hosts(p),
		wide: time.Duration(min(c.healing.Failed(rank), mostWidened)) * widened,
	}
	w.others, w.machines = c.rest(rank)
	w.without = c.excludedPeers(w.hosts)
	go func() { c.found <- c.j.recruit(ctx, w, c.peers.inbox) }() // ends with its finding, soon after ctx does
}

// rest returns the failure domains of the peers that run a rank now, and the machines that these
// peers have named in their grants.
func (c *recruitment) rest(rank int) (domains []reservation.Domain, machines []string) {
	for _, p := range c.state.View().LiveReplicas(rank) {
		l := c.peers.runsOn[p]
		if l == nil {
			continue
		}
		domains = append(domains, c.j.known.domainOf(l.peer))
		if l.slots.Machine != "" {
			machines = append(machines, l.slots.Machine)
		}
	}
	return domains, machines
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
func (c *recruitment) excludedPeers(hosts map[p2ppeer.ID]*link) map[p2ppeer.ID]bool {
	out := maps.Clone(c.j.known.excluded)
	for _, l := range c.peers.links {
		if l.err == nil && hosts[l.peer] == nil {
			out[l.peer] = true
		}
	}
	now := time.Now()
	for p := range c.avoided {
		if c.avoided.Avoids(p, now) {
			out[p] = true
		}
	}
	return out
}

var errNoOther = errors.New("no other peer has a slot")

// recruit holds a slot for a process, and opens a control stream to its peer if there is none. It
// prefers peers without a part in the job, and among them peers in another failure domain than the
// rest of the rank. It runs concurrently with the goroutine that runs the job.
func (j *run) recruit(ctx context.Context, w vacancy, inbox inbox) finding {
	s, f := j.s, finding{rank: w.process.Rank}
	candidates, err := j.candidates(ctx, w)
	if err != nil {
		f.err = err
		return f
	}
	asking, cancel := lingering(ctx, s.waits.answers)
	defer cancel()
	candidates = othersFirst(reservation.Apart(candidates, w.others), w.hosts)
	reserved, err := reservation.Reserve(asking, s.holder, candidates, reservation.Need{
		Job: j.spec.ID, N: 1, R: 1, Since: j.spec.Created, Kinds: j.kinds(), NotOn: w.machines,
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
	if err := f.link.open(ctx, s.cfg.Host, inbox); err != nil {
		f.link.err = fmt.Errorf("open a control stream: %w", err)
	}
	return f
}

// candidates returns the peers that a search finds.
func (j *run) candidates(ctx context.Context, w vacancy) ([]reservation.Candidate, error) {
	filter := j.req.Filter
	filter.Not = slices.Concat(filter.Not, slices.Collect(maps.Keys(w.without)))
	looking, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	found, _, err := j.s.cfg.Discovery.Candidates(looking, discovery.Need{PerPeer: 1, Wide: w.wide, Filter: filter})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	candidates := j.known.eligible(found, make(considered))
	if len(candidates) == 0 {
		return nil, errNoOther
	}
	return candidates, nil
}

// handleFound handles the result of a search.
func (c *recruitment) handleFound(f finding) {
	c.search = nil
	if f.link == nil {
		c.j.log.Debug().Int("rank", f.rank).Err(f.err).Msg("no recruit")
		c.tellWait(f.rank, f.err)
		c.healing.GaveUp(f.rank, c.j.elapsed())
		return
	}
	l := f.link
	if f.added != nil {
		c.addTo(l, f.added)
		return
	}
	c.peers.links = append(c.peers.links, l)
	if l.err != nil {
		c.giveUp(l, l.err)
		return
	}
	c.peers.serve(l.peer)
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: &jobpb.Prepare{
		Spec: c.j.envelope, Key: l.slots.Key[:], Joining: true,
		Processes: []*jobpb.Process{jobpb.FromProcess(l.recruit.process)},
	}}})
}

// tellWait tells the user why no peer was found for a rank.
func (c *recruitment) tellWait(rank int, err error) {
	why := "no peer that is asked grants a slot"
	if errors.Is(err, errNoOther) {
		why = "no free slot on a peer that does not run it already"
	}
	if short, ok := errors.AsType[*reservation.ShortageError](err); ok && short.Reasons[reservation.SameMachine] == short.Considered {
		why = "the peers with a free slot are on machines that run the rank already"
	}
	c.tellLacking(rank, why)
}

// tellLacking tells the user that a rank still lacks a replica, once per reason.
func (c *recruitment) tellLacking(rank int, why string) {
	if slices.Contains(c.lacking[rank], why) {
		return
	}
	c.lacking[rank] = append(c.lacking[rank], why)
	c.j.emit(Event{Kind: HealEvent, Rank: rank, Text: fmt.Sprintf("rank %d still lacks a replica: %s; the search goes on", rank, why)})
}

// endSearch ends the search for a peer, if one runs. A peer or slot that it has found anyway has to
// be released like the others.
func (c *recruitment) endSearch() {
	if c.search == nil {
		return
	}
	c.search()
	switch f := <-c.found; {
	case f.added != nil:
		c.recordUnusedSlot(f.added)
	case f.link != nil:
		c.peers.links = append(c.peers.links, f.link)
	}
	c.search = nil
}
