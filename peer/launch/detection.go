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

// enter replaces the group with one that has the given members.
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
