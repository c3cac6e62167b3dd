package reservation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Strategy says how a job's processes are dealt out to peers. The strategies
// are those of P2P-MPI (seed 004). Whichever it is, no peer gets two replicas
// of one rank.
type Strategy byte

// The strategies. The two that begin with Data take the peers with the most
// bytes of the job's files first, instead of the nearest.
const (
	Spread          Strategy = iota // one process per peer in each pass over the peers: memory and bandwidth
	Concentrate                     // each peer filled before the next: short ways
	DataSpread                      // Spread, cached bytes first
	DataConcentrate                 // Concentrate, cached bytes first
)

var strategyNames = [...]string{"spread", "concentrate", "dataspread", "dataconcentrate"}

// String names s as ParseStrategy reads it.
func (s Strategy) String() string {
	if int(s) < len(strategyNames) {
		return strategyNames[s]
	}
	return fmt.Sprintf("strategy %d", byte(s))
}

// ParseStrategy reads the name of a strategy.
func ParseStrategy(name string) (Strategy, error) {
	if i := slices.Index(strategyNames[:], name); i >= 0 {
		return Strategy(i), nil
	}
	return 0, fmt.Errorf("strategy %q: want %s", name, strings.Join(strategyNames[:], ", "))
}

// The two ways in which peers do not suffice for n ranks of r replicas.
var (
	ErrFewPeers = errors.New("fewer peers than replicas of a rank")
	ErrFewSlots = errors.New("too few slots")
)

// PeerSlots is what a Strategy knows of a peer.
type PeerSlots struct {
	Slots  int   // that it gives to the job
	Cached int64 // bytes of the job's files that it has already
}

// An Assignment holds, for each peer in the order given, its processes.
type Assignment [][]view.Process

// Assign deals out the n*r processes to peers, given nearest first. Peers that
// come first get the lower replicas, so masters are near the submitter.
//
// The processes are numbered 0..n*r-1, number m being replica m/n of rank m mod
// n. Each peer gets consecutive numbers and at most n of them, hence no rank
// twice; slots above n are of no use. The error is ErrFewPeers or ErrFewSlots,
// wrapped with the figures.
func (s Strategy) Assign(peers []PeerSlots, n, r int) (Assignment, error) {
	if n < 1 || r < 1 || n > view.MaxProcesses/r {
		return nil, fmt.Errorf("assign n=%d r=%d: out of range", n, r)
	}
	order := s.order(peers)
	room := make([]int, len(peers))
	for i, p := range order {
		room[i] = usable(peers[p].Slots, n)
	}
	if err := suffices(room, n, r); err != nil {
		return nil, fmt.Errorf("assign n=%d r=%d: %w", n, r, err)
	}
	out := make(Assignment, len(peers))
	next := 0
	for i, count := range s.fill(room, n*r) {
		for range count {
			out[order[i]] = append(out[order[i]], view.Process{Rank: next % n, Replica: next / n})
			next++
		}
	}
	return out, nil
}

// usable says how many of a peer's slots can serve a job of n ranks.
func usable(slots, n int) int { return max(0, min(slots, n)) }

// suffices reports whether room, capped at n, is enough for n*r processes.
func suffices(room []int, n, r int) error {
	peers, slots := 0, 0
	for _, c := range room {
		if c > 0 {
			peers++
			slots += c
		}
	}
	switch {
	case peers < r:
		return fmt.Errorf("%w: %d of %d", ErrFewPeers, peers, r)
	case slots < n*r:
		return fmt.Errorf("%w: %d of %d", ErrFewSlots, slots, n*r)
	}
	return nil
}

// order returns the indices of peers, best first.
func (s Strategy) order(peers []PeerSlots) []int {
	order := make([]int, len(peers))
	for i := range order {
		order[i] = i
	}
	if s == DataSpread || s == DataConcentrate {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(peers[b].Cached, peers[a].Cached)
		})
	}
	return order
}

// fill deals out up to want slots to peers with that much room, and returns how
// many each gets.
func (s Strategy) fill(room []int, want int) []int {
	counts := make([]int, len(room))
	if s == Concentrate || s == DataConcentrate {
		for i, c := range room {
			counts[i] = min(c, want)
			want -= counts[i]
		}
		return counts
	}
	for dealt := true; dealt && want > 0; {
		dealt = false
		for i, c := range room {
			if counts[i] < c && want > 0 {
				counts[i]++
				want--
				dealt = true
			}
		}
	}
	return counts
}
