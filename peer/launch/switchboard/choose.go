package switchboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// Both returns the kinds that are in asked and in allowed, in the order of asked.
func Both(asked, allowed []proclink.Kind) []proclink.Kind {
	return slices.DeleteFunc(slices.Clone(asked), func(k proclink.Kind) bool { return !slices.Contains(allowed, k) })
}

// A channelPath is the path that the messages of a channel take.
type channelPath struct {
	kind  proclink.Kind  // empty: there is no path
	how   connection.Way // empty: within this peer
	relay p2ppeer.ID     // relay on the path, if any
}

// rank returns the rank of a path; lower is better. It orders by kind, in the order of allowed, and then
// by connection: direct, punched, relayed.
func (p channelPath) rank(allowed []proclink.Kind) int {
	kind := slices.Index(allowed, p.kind)
	if kind < 0 {
		kind = len(allowed)
	}
	return kind*len(connection.Ways) + max(0, slices.Index(connection.Ways, p.how))
}

// best reports whether no path to another peer is better.
func (p channelPath) best(allowed []proclink.Kind) bool {
	between := slices.DeleteFunc(slices.Clone(allowed), func(k proclink.Kind) bool { return k == proclink.Shm })
	return p.rank(between) == 0
}

// A pathSearch schedules the searches for a better path to a peer.
type pathSearch struct {
	running bool          // a search is running
	due     time.Time     // latest time of the next search
	pause   time.Duration // pause after the next search

	failed time.Duration // how long TCP is avoided after the last failure
	until  time.Time     // end of that time
}

const (
	// Initial and maximum pause between two searches for a better path.
	minSearchPause = 2 * time.Second
	maxSearchPause = 30 * time.Second

	// Initial and maximum time in which TCP is avoided after the processes could not use it.
	minAvoid = 30 * time.Second
	maxAvoid = 10 * time.Minute
)

func newPathSearch(now time.Time) *pathSearch {
	return &pathSearch{due: now.Add(minSearchPause), pause: 2 * minSearchPause}
}

// begin reports whether a search must start now. hint indicates that the connection to the peer has
// improved.
func (s *pathSearch) begin(now time.Time, hint bool) bool {
	if s.running || !hint && now.Before(s.due) {
		return false
	}
	s.running = true
	return true
}

func (s *pathSearch) end(now time.Time) {
	s.running, s.due = false, now.Add(s.pause)
	s.pause = min(2*s.pause, maxSearchPause)
}

// failTCP records that the processes could not use an established TCP connection. It ignores further failures
// while TCP is avoided, since those attempts were made at the same time. If no
// failure follows for more than maxAvoid after that time, the next failure counts as the first one.
func (s *pathSearch) failTCP(now time.Time) {
	if s.avoidsTCP(now) {
		return
	}
	if now.Sub(s.until) > maxAvoid {
		s.failed = 0
	}
	s.failed = min(max(minAvoid, 2*s.failed), maxAvoid)
	s.until = now.Add(s.failed)
}

func (s *pathSearch) avoidsTCP(now time.Time) bool { return now.Before(s.until) }

// reset forgets the failures, because the connection to the peer has changed.
func (s *pathSearch) reset() { s.failed, s.until = 0, time.Time{} }

// A situation holds what is known about two processes of which one wants a channel to the other.
type situation struct {
	here     bool   // both run on this peer
	noMemory string // why they cannot share memory, or empty
	noDirect string // why they cannot have a TCP connection, or empty
}

// choose returns the first of the allowed kinds that is possible, and explains the choice, including why no
// better kind was chosen. The kind is empty if no kind is possible.
func choose(s situation, allowed []proclink.Kind) (kind proclink.Kind, why string) {
	better := proclink.Kinds
	if i := slices.IndexFunc(allowed, func(k proclink.Kind) bool { return s.obstacleTo(k) == "" }); i >= 0 {
		kind = allowed[i]
		better = proclink.Kinds[:slices.Index(proclink.Kinds, kind)]
	}
	reasons := []string{"on different peers"}
	if s.here {
		reasons[0] = "both on one peer"
	}
	for _, k := range better {
		switch obstacle := s.obstacleTo(k); {
		case k == proclink.Shm && !s.here: // stated already
		case !slices.Contains(allowed, k):
			reasons = append(reasons, fmt.Sprintf("%s is not allowed", k))
		case obstacle != "":
			reasons = append(reasons, fmt.Sprintf("no %s: %s", k, obstacle))
		default:
			reasons = append(reasons, fmt.Sprintf("%s is preferred to %s", kind, k))
		}
	}
	return kind, strings.Join(reasons, "; ")
}

// obstacleTo returns what prevents kind k, or "". Nothing prevents a stream.
func (s situation) obstacleTo(k proclink.Kind) string {
	switch {
	case k == proclink.Shm && !s.here:
		return "on different peers"
	case k == proclink.Shm:
		return s.noMemory
	case k == proclink.TCP:
		return s.noDirect
	}
	return ""
}
