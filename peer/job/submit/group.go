package submit

import (
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A detectorGroup is the submitter's side of the job's detector group. The group is fixed once it
// is formed. So until the next generation, the submitter and each recruit form a group of their own.
type detectorGroup struct {
	j          *run
	members    []p2ppeer.ID
	detector   *faultdetect.Group // nil until all peers have started, or have reconnected to a new process
	generation uint32
	formed     time.Time
	failed     chan struct{} // holds a token when the detector may have failed a peer
}

// firstHeartbeat is the initial heartbeat counter of every member, so that all are in the same
// round, as P2P-MPI aligns heartbeats in MPI_Init.
const firstHeartbeat = 1

// join makes the submitter's peer a member of a group of the fault detector. links are those to its first
// members, in this order.
func (g *detectorGroup) join(job string, members []p2ppeer.ID, hang time.Duration, links ...*link) (*faultdetect.Group, error) {
	cfg := g.j.s.cfg
	return cfg.Detector.Join(faultdetect.GroupConfig{
		Job: job, Members: members, Self: slices.Index(members, cfg.Host.ID()),
		Period: cfg.Period, Offset: firstHeartbeat, Hang: hang, Mode: cfg.Mode,
		Verdict: func(v faultdetect.Verdict) {
			if v.Member < len(links) {
				g.verdict(links[v.Member], v)
			}
		},
	})
}

// membersOf returns the peers of these links, in this order, and the submitter's peer.
func (g *detectorGroup) membersOf(links []*link) (members []p2ppeer.ID) {
	for _, l := range links {
		members = append(members, l.peer)
	}
	if self := g.j.s.cfg.Host.ID(); !slices.Contains(members, self) {
		members = append(members, self)
	}
	return members
}

// form makes the peers of these links, in this order, and the submitter's peer members of a
// detector group of the current generation.
func (g *detectorGroup) form(links []*link) error {
	members := g.membersOf(links)
	detector, err := g.join(jobpb.GroupAgain(g.j.spec.ID, g.generation), members, g.j.hang(), links...)
	if err != nil {
		return fmt.Errorf("join the fault detector: %w", err)
	}
	g.members, g.detector, g.formed = members, detector, time.Now()
	return nil
}

// regroup starts a group of the next generation now that the submitter is in touch again. A member
// that a group has failed stays failed in it, and it is unknown whether that member or the submitter
// was cut off. The new group finds the peers that are really silent. It includes the peers that
// joined the job later.
func (g *detectorGroup) regroup(links []*link) error {
	before := g.detector
	g.generation++
	if err := g.form(links); err != nil {
		return err
	}
	if before != nil {
		before.Close()
	}
	m := g.joinMessage(g.members...)
	for _, l := range links {
		l.leaveGroup()
		l.suspicion.failed.Store(false)
		l.suspicion.since.Store(0) // all members of the new group start live
		l.send(m)
	}
	g.j.log.Info().Uint32("generation", g.generation).Int("peers", len(links)).Msg("reconnected to the job's peers")
	return nil
}

// watch starts to watch the peer of a recruit.
func (g *detectorGroup) watch(l *link) (err error) {
	self := g.j.s.cfg.Host.ID()
	if l.peer == self {
		return nil
	}
	pair := []p2ppeer.ID{l.peer, self}
	if l.group, err = g.join(jobpb.GroupOf(g.j.spec.ID, l.recruit.process), pair, g.j.s.cfg.Hang, l); err == nil {
		l.send(g.joinMessage(pair...))
	}
	return err
}

// joinMessage asks a peer to join a detector group of the current generation.
func (g *detectorGroup) joinMessage(members ...p2ppeer.ID) *jobpb.ToPeer {
	cfg := g.j.s.cfg
	m := &jobpb.Join{
		Heartbeat: firstHeartbeat, PeriodNs: int64(cfg.Period), HangNs: int64(g.j.hang()),
		GossipOnly: cfg.Mode == faultdetect.Gossip, Generation: g.generation,
	}
	for _, id := range members {
		m.Group = append(m.Group, []byte(id))
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Join{Join: m}}
}

// repeatJoin repeats to a peer that it is to join the current group. A peer that joined the job
// after the group was formed is no member.
func (g *detectorGroup) repeatJoin(l *link) {
	if g.generation > 0 && slices.Contains(g.members, l.peer) {
		l.send(g.joinMessage(g.members...))
	}
}

// verdict records a verdict of the fault detector on a peer. Any goroutine may call it.
func (g *detectorGroup) verdict(l *link, v faultdetect.Verdict) {
	switch v.State {
	case faultdetect.Suspect:
		l.suspicion.trip.Store(int64(v.RoundTrip))
		l.suspicion.since.Store(time.Now().UnixNano())
	case faultdetect.Live:
		l.suspicion.since.Store(0)
	case faultdetect.Failed:
		l.suspicion.failed.Store(true)
		signal(g.failed)
	}
}

// regroupAfter is shorter than the time in which a detector group finds a silent member. An earlier
// report of silence stems from the previous group.
const regroupAfter = time.Second

// concerned reports whether a report of silence in a generation concerns the current group.
func (g *detectorGroup) concerned(generation uint32) bool {
	return generation == g.generation && time.Since(g.formed) > regroupAfter
}

// question makes the detector question a peer, unless the peer is outside the group.
func (g *detectorGroup) question(p p2ppeer.ID) {
	if g.detector != nil {
		g.detector.Report(p)
	}
}

// generationsOf is the number of generations that a process of the submitter can form.
const generationsOf = 1 << 18

// firstGeneration returns the first generation of a process of the submitter that has resumed the job
// after the given number of earlier processes. A peer refuses a generation that is not later than its
// own, so each process has its own range, after those of the earlier ones.
func firstGeneration(earlier int) uint32 { return uint32(earlier) * generationsOf }

// remove removes a peer that the job has given up.
func (g *detectorGroup) remove(l *link) {
	if l.group == nil && g.detector != nil && l.recruit == nil {
		g.detector.Gone(l.peer)
	}
	l.leaveGroup()
}

func (g *detectorGroup) close() {
	if g.detector != nil {
		g.detector.Close()
	}
}

// leaveGroup ends the detector group that a recruit and the submitter have formed, if there is one.
func (l *link) leaveGroup() {
	if l.group != nil {
		l.group.Close()
		l.group = nil
	}
}
