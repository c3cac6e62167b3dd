package launch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A detection holds what a job knows of its fault detection group.
type detection struct {
	group        *faultdetect.Group
	generation   uint32              // of the group
	failed       map[p2ppeer.ID]bool // members of the group; true if it has failed them
	hang         time.Duration       // tolerated silence of a peer
	reportsUntil time.Time           // end of the time in which the job reports its presence after it has started
}

// enter replaces the group by another one, which has the given members.
func (d *detection) enter(group *faultdetect.Group, generation uint32, members []p2ppeer.ID) {
	d.group, d.generation, d.failed = group, generation, make(map[p2ppeer.ID]bool)
	for _, member := range members {
		d.failed[member] = false
	}
}

// Bounds of the gossip period that a submitter requests.
const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = time.Minute
)

// watchGroup returns the group that a Join describes, for this peer, which is self. name names the group.
func watchGroup(m *jobpb.Join, name string, self, submitter p2ppeer.ID) (group faultdetect.GroupConfig, err error) {
	period := time.Duration(m.PeriodNs)
	if period != 0 && (period < minPeriod || period > maxPeriod) {
		return group, fmt.Errorf("gossip period of %v", period)
	}
	group = faultdetect.GroupConfig{Job: name, Self: -1, Period: period, Offset: m.Heartbeat, Hang: time.Duration(m.HangNs)}
	if m.GossipOnly {
		group.Mode = faultdetect.Gossip
	}
	for i, b := range m.Group {
		id, err := p2ppeer.IDFromBytes(b)
		if err != nil {
			return group, fmt.Errorf("fault detection group: member %d: %w", i, err)
		}
		if id == self {
			group.Self = i
		}
		group.Members = append(group.Members, id)
	}
	if !slices.Contains(group.Members, submitter) {
		return group, errors.New("fault detection group without the submitter")
	}
	return group, nil
}

// join makes this peer a member of the job's fault detection group, or of a later generation of it. If this
// peer is the submitter, it is already a member.
func (j *job) join(m *jobpb.Join) error {
	before := j.detection.group
	if before != nil && m.Generation > 0 && m.Generation == j.detection.generation {
		return nil // repeated, since it might have been lost
	}
	if before != nil && m.Generation <= j.detection.generation {
		return errOrder(m)
	}
	if j.submitter == j.service.host.ID() {
		j.tolerate(time.Duration(m.HangNs))
		return nil
	}
	name := jobpb.GroupAgain(j.spec.ID, m.Generation)
	if j.joining && before == nil { // its own group, with the submitter
		name = jobpb.GroupOf(j.spec.ID, j.here.order[0])
	}
	group, err := watchGroup(m, name, j.service.host.ID(), j.submitter)
	if err != nil {
		return err
	}
	group.Verdict = func(v faultdetect.Verdict) {
		if v.State == faultdetect.Failed {
			j.do(func() { j.peerFailed(group.Members[v.Member], m.Generation) })
		}
	}
	detector, err := j.service.config.Detector.Join(group)
	if err != nil {
		return err
	}
	if before == nil && !j.joining {
		j.detection.reportsUntil = time.Now().Add(reportsFor)
	}
	if before != nil {
		j.running.Go(before.Close) // it may be about to deliver a verdict, which waits for this goroutine
	}
	j.detection.enter(detector, m.Generation, group.Members)
	j.presence.joined(time.Now())
	j.tolerate(group.Hang)
	if len(m.Views) == 0 {
		return nil
	}
	c, err := firstGroup(m.Views, group.Members, j.views.current, j.members.PeerOf)
	if err != nil {
		return err
	}
	return j.vote(c)
}

// tolerate sets how long the job tolerates silence of its peers.
func (j *job) tolerate(hang time.Duration) {
	j.detection.hang = hang
	j.liveness.tolerate(hang, j.spec.R)
}

// peerFailed handles the fault detector's verdict that a peer has failed. If the peer is the submitter, it
// may only be cut off. In a job with a view group it may come back; any other job ends.
func (j *job) peerFailed(peer p2ppeer.ID, generation uint32) {
	if generation != j.detection.generation {
		return
	}
	if peer == j.submitter {
		if j.views.group == nil {
			j.end(errSubmitterFailed)
			return
		}
		j.submitterSilent()
	}
	j.detection.failed[peer] = true
	j.send(suspect([]byte(peer), generation))
}
