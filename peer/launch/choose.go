package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
)

// both returns the kinds that are in asked and in allowed, in the order of asked.
func both(asked, allowed []proclink.Kind) []proclink.Kind {
	return slices.DeleteFunc(slices.Clone(asked), func(k proclink.Kind) bool { return !slices.Contains(allowed, k) })
}

// A passage is how the messages of a channel go.
type passage struct {
	kind  proclink.Kind  // empty: they do not
	how   connection.Way // empty: within this peer
	relay p2ppeer.ID     // that they go through, if any
}

// rank of a passage is the lower the better it is: first of all its kind, in the order of those
// that are allowed, then directly before punched before relayed.
func (p passage) rank(allowed []proclink.Kind) int {
	kind := slices.Index(allowed, p.kind)
	if kind < 0 {
		kind = len(allowed)
	}
	return kind*len(connection.Ways) + max(0, slices.Index(connection.Ways, p.how))
}

// best reports whether no passage to another peer is better.
func (p passage) best(allowed []proclink.Kind) bool {
	between := slices.DeleteFunc(slices.Clone(allowed), func(k proclink.Kind) bool { return k == proclink.Shm })
	return p.rank(between) == 0
}

// A seeking is when a better passage to a peer is looked for.
type seeking struct {
	looking bool          // a look is under way
	due     time.Time     // the next time, at the latest
	pause   time.Duration // after that

	failed time.Duration // how long TCP is avoided, since the processes could not use it
	until  time.Time     // when that ends
}

const (
	// Between two looks for a better passage, at first and at most.
	seekFirst = 2 * time.Second
	seekMost  = 30 * time.Second

	// TCP that the processes could not use is avoided for so long, at first and at most.
	avoidFirst = 30 * time.Second
	avoidMost  = 10 * time.Minute
)

func newSeeking(now time.Time) *seeking {
	return &seeking{due: now.Add(seekFirst), pause: 2 * seekFirst}
}

// begin reports whether to look now. A connection that has become better says so.
func (s *seeking) begin(now time.Time, hint bool) bool {
	if s.looking || !hint && now.Before(s.due) {
		return false
	}
	s.looking = true
	return true
}

func (s *seeking) end(now time.Time) {
	s.looking, s.due = false, now.Add(s.pause)
	s.pause = min(2*s.pause, seekMost)
}

// fail says that the processes could not use a TCP connection that there was. Those that say so
// while it is avoided tried at the same time. After a time of more than avoidMost without, it is
// the first failure again.
func (s *seeking) fail(now time.Time) {
	if s.avoids(now) {
		return
	}
	if now.Sub(s.until) > avoidMost {
		s.failed = 0
	}
	s.failed = min(max(avoidFirst, 2*s.failed), avoidMost)
	s.until = now.Add(s.failed)
}

// avoids reports whether TCP is not to be tried.
func (s *seeking) avoids(now time.Time) bool { return now.Before(s.until) }

// forgive forgets the failures: the way to the peer is another.
func (s *seeking) forgive() { s.failed, s.until = 0, time.Time{} }

// A situation is that of two processes of which one wants a channel to the other.
type situation struct {
	here     bool   // both are on this peer
	noMemory string // why they cannot share memory, or empty
	noDirect string // why they cannot have a TCP connection, or empty
	noStream string // why the peers cannot bridge them, or empty
}

// choose says of which kind the channel is to be, the first of those allowed that
// can be, and why: also why none of the better kinds. The kind is empty when
// there is no way.
func choose(s situation, allowed []proclink.Kind) (kind proclink.Kind, why string) {
	better := proclink.Kinds
	if i := slices.IndexFunc(allowed, func(k proclink.Kind) bool { return s.against(k) == "" }); i >= 0 {
		kind = allowed[i]
		better = proclink.Kinds[:slices.Index(proclink.Kinds, kind)]
	}
	reasons := []string{"on different peers"}
	if s.here {
		reasons[0] = "both on one peer"
	}
	for _, k := range better {
		switch obstacle := s.against(k); {
		case k == proclink.Shm && !s.here: // that is said already
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

// against says what forbids kind k, or nothing.
func (s situation) against(k proclink.Kind) string {
	switch {
	case k == proclink.Shm && !s.here:
		return "on different peers"
	case k == proclink.Shm:
		return s.noMemory
	case k == proclink.TCP:
		return s.noDirect
	}
	return s.noStream
}
