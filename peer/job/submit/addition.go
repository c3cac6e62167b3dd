package submit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A process that is to join a rank may run beside other processes of the job, on a peer that runs
// no replica of that rank. The control stream that the peer already has carries the messages:
//
//	submitter                               peer
//	    |-- Add(process, key), Emitted ------->|  staging
//	    |<-- Added ----------------------------|  entering
//	    |<-- Initialized(key) -----------------|  joining, as in recruit.go; its peer is a member of
//	    |                                      |  the view group already
//	    |-- Drop ----------------------------->|  or, before it joins: it is dropped
//	    |<-- Added(error) ---------------------|  nothing of it is left
//
// When the stream breaks before the process joins, the submitter drops the process, and repeats
// Drop when the peer is connected again. The reservation key distinguishes the answers of one
// attempt from those of the next.

// adds reports whether a process that is to join rank is being added.
func (l *link) adds(rank int) bool {
	for p := range l.added {
		if p.Rank == rank {
			return true
		}
	}
	return false
}

// canRun reports whether the peer of a link can run p beside its other processes.
func (c *recruitment) canRun(l *link, p view.Process) bool {
	if l.err != nil || l.retired || l.session.disconnected || l.recruit != nil {
		return false
	}
	if _, ending := l.dropped[p]; ending {
		return false
	}
	for _, r := range l.added {
		if r.phase == recruitStaging || r.process.Rank == p.Rank { // its peer would redeem the same slot again
			return false
		}
	}
	v, runs := c.state.View(), false
	for _, q := range l.processes {
		if q.Rank == p.Rank && v.State(q) != view.Failed || c.state.Leaving(q) {
			return false
		}
		runs = runs || v.Has(q)
	}
	return runs // otherwise its part is about to end
}

// hosts returns the links to the job's peers that can run p.
func (c *recruitment) hosts(p view.Process) map[p2ppeer.ID]*link {
	out := make(map[p2ppeer.ID]*link)
	for _, l := range c.peers.links {
		if c.canRun(l, p) {
			out[l.peer] = l
		}
	}
	return out
}

// addTo asks the peer of a link to run one more process, for which it has a slot.
func (c *recruitment) addTo(l *link, r *recruit) {
	if !c.canRun(l, r.process) { // something has changed meanwhile
		c.recordUnusedSlot(r)
		c.healing.GaveUp(r.process.Rank, c.j.elapsed())
		return
	}
	l.added[r.process] = r
	l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Add{Add: &jobpb.Add{Process: jobpb.FromProcess(r.process), Key: r.slots.Key[:]}}})
	l.send(c.outputs.emitted(r.process.Rank)) // the peer must not repeat output that the user has
}

// handleStaging notes that a peer is still fetching the files of the processes that it adds.
func (l *link) handleStaging() {
	for _, r := range l.added {
		r.heard = time.Now()
	}
}

// handleAddition handles a message about process p if p is being added or was dropped, and reports
// whether it was such a message.
func (c *recruitment) handleAddition(h received, p view.Process) (meant bool, _ *job.Result) {
	l, r, answer := h.link, h.link.added[p], h.msg.GetAdded()
	switch {
	case answer != nil && (r == nil || !bytes.Equal(answer.Key, r.slots.Key[:])):
		c.handleDropped(l, p, answer)
		return true, nil
	case r != nil && r.phase != recruitJoining:
		r.heard = time.Now()
		return true, c.advanceAddition(l, r, h.msg)
	}
	_, dropped := l.dropped[p]
	isLate := p.Replica >= c.j.req.R && c.peers.runsOn[p] != l && (c.j.resumed || dropped)
	return isLate, nil
}

// handleDropped handles the answer to an attempt to add p that this submitter does not wait for. If
// the answer reports that the process runs, the previous submitter process added it. No submitter
// will let it join any more, so it is dropped.
func (c *recruitment) handleDropped(l *link, p view.Process, m *jobpb.Added) {
	key, dropped := l.dropped[p]
	switch {
	case dropped && m.Error != "" && bytes.Equal(m.Key, key[:]):
		delete(l.dropped, p)
	case !dropped && m.Error == "" && c.j.resumed && c.peers.runsOn[p] != l && len(m.Key) == len(key):
		l.dropped[p] = reservation.Key(m.Key)
		l.send(dropMessage(p, l.dropped[p]))
	}
}

// advanceAddition moves a process that is being added from phase to phase, according to its peer's
// messages.
func (c *recruitment) advanceAddition(l *link, r *recruit, m *jobpb.FromPeer) *job.Result {
	switch added := m.GetAdded(); {
	case added == nil:
		return c.advanceProcess(l, r, m)
	case added.Error != "": // nothing of the process exists
		delete(l.added, r.process)
		c.recordUnusedSlot(r)
		c.additionFailed(l, r, errors.New(plain(added.Error)))
	case r.phase == recruitStaging:
		r.phase = recruitEntering
	default:
		c.dropAddition(l, r, unexpected(m))
	}
	return nil
}

// dropAddition drops a recruit that has not joined; the search for another one follows.
func (c *recruitment) dropAddition(l *link, r *recruit, err error) {
	if r == l.recruit {
		c.giveUp(l, err)
		return
	}
	c.drop(l, r)
	c.additionFailed(l, r, err)
}

// additionFailed logs and counts a failed attempt to add a process.
func (c *recruitment) additionFailed(l *link, r *recruit, err error) {
	c.j.log.Info().Stringer("peer", l.peer).Int("rank", r.process.Rank).Err(err).Msg("process not added")
	c.healing.GaveUp(r.process.Rank, c.j.elapsed())
	c.avoid(l.peer)
}

// drop tells a peer to drop a process that was to be added. The peer may not know the process.
func (c *recruitment) drop(l *link, r *recruit) {
	delete(l.added, r.process)
	l.dropped[r.process] = r.slots.Key
	c.recordUnusedSlot(r)
	l.send(dropMessage(r.process, r.slots.Key))
}

// recordUnusedSlot records a slot that no peer may have redeemed. The job returns it at its end,
// unless the lease ends earlier.
func (c *recruitment) recordUnusedSlot(r *recruit) {
	if r.phase == recruitStaging {
		c.unused[r.slots.Peer] = r.slots
	}
}

func dropMessage(p view.Process, key reservation.Key) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Drop{Drop: &jobpb.Drop{Process: jobpb.FromProcess(p), Key: key[:]}}}
}

// dropUnneededAdditions drops processes that are not needed any more, or whose peer is silent about
// them.
func (c *recruitment) dropUnneededAdditions(l *link) {
	for _, r := range l.added {
		switch {
		case l.err != nil || r.phase == recruitJoining:
		case !c.state.Lacks(r.process.Rank):
			c.drop(l, r)
		case r.phase == recruitStaging && time.Since(r.heard) > c.j.replaceAfter():
			c.dropAddition(l, r, fmt.Errorf("no message for %v", c.j.replaceAfter()))
		}
	}
}

// abandonAdditions drops the processes that have yet to join. It is called if the stream to their
// peer has broken, or if the job is over.
func (c *recruitment) abandonAdditions(l *link) {
	for _, r := range l.added {
		if r.phase != recruitJoining {
			c.drop(l, r)
		}
	}
}

// othersFirst moves peers that take part in the job to the end, since other peers have more room.
func othersFirst(candidates []reservation.Candidate, hosts map[p2ppeer.ID]*link) []reservation.Candidate {
	out := slices.Clone(candidates)
	slices.SortStableFunc(out, func(a, b reservation.Candidate) int {
		switch has, other := hosts[a.Peer] != nil, hosts[b.Peer] != nil; {
		case has == other:
			return 0
		case has:
			return 1
		}
		return -1
	})
	return out
}
