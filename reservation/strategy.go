package reservation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Strategy says how a job's processes are dealt out to peers. The strategies
// are those of P2P-MPI (seed 004). Whichever it is, no machine gets two replicas
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
	ErrFewPeers = errors.New("fewer machines than replicas of a rank")
	ErrFewSlots = errors.New("too few slots")
)

// PeerSlots is what a Strategy knows of a peer.
type PeerSlots struct {
	Slots  int           // that it gives to the job
	Cached int64         // bytes of the job's files that it has already
	Speed  int           // of a processor, in any unit; 0: unknown
	RTT    time.Duration // between it and the submitter
	Domain Domain
	// Machine is equal for peers on one machine; empty: unknown, and taken for one of its own.
	Machine string
}

// An Assignment holds, for each peer in the order given, its processes.
type Assignment [][]view.Process

// Assign deals out the n*r processes to peers, given nearest first.
//
// Peers on one machine are dealt with as one peer, and share what it gets in order.
//
// How many each peer gets is up to the strategy, with one exception: a group of peers that
// may fail together (see Domain) gets more than n only when the others do not have room
// for the rest. Which they are is the same for all strategies. The processes of a
// peer are of different ranks, those of a group, too, unless it got more than n; and
// the master of a rank (replica 0) is the fastest of its peers, the nearest of
// several as fast. The fastest peers are masters of most ranks.
//
// So replicas of a rank are never on one machine; and if the slots of peers allow for it, no
// two are in one group of the same owner or addresses. Where that is impossible, it is tried
// for those of the same owner, if owners are verified, and then for those of the same site or
// addresses, and of the same addresses. What peers only say of owner, site and address joins
// none of the others. The error is ErrFewPeers or ErrFewSlots, wrapped with the figures; slots
// above n are of no use.
func (s Strategy) Assign(peers []PeerSlots, n, r int) (Assignment, error) {
	if n < 1 || r < 1 || n > view.MaxProcesses/r {
		return nil, fmt.Errorf("assign n=%d r=%d: out of range", n, r)
	}
	merged, of := merge(peers, n)
	order := s.order(merged)
	sorted := make([]PeerSlots, len(merged))
	room := make([]int, len(merged))
	for i, k := range order {
		sorted[i], room[i] = merged[k], merged[k].Slots
	}
	if err := suffices(room, n, r); err != nil {
		return nil, fmt.Errorf("assign n=%d r=%d: %w", n, r, err)
	}
	groups, _ := groups(sorted, n, n*r)
	counts := s.fill(groups, room, make([]int, len(peers)), n, n*r)
	out := make(Assignment, len(peers))
	for i, ps := range number(sorted, groups, counts, n) {
		out.share(ps, of[order[i]], peers)
	}
	return out, nil
}

// number says which processes each peer runs of as many as counts says. The processes are
// numbered 0..n*r-1, number m being of rank m mod n. Each peer, and each group of peers
// that may fail together, gets consecutive numbers: hence no rank twice as long as these
// are at most n.
func number(peers []PeerSlots, groups [][]int, counts []int, n int) [][]view.Process {
	merit := byMerit(peers)
	holders := make([][]int, n) // of each rank
	next := 0
	for _, i := range together(groups, merit) {
		for range counts[i] {
			holders[next%n] = append(holders[next%n], i)
			next++
		}
	}
	out := make([][]view.Process, len(peers))
	for rank, on := range holders {
		slices.SortFunc(on, func(a, b int) int { return cmp.Compare(merit[a], merit[b]) })
		for replica, i := range on {
			out[i] = append(out[i], view.Process{Rank: rank, Replica: replica})
		}
	}
	for _, ps := range out {
		slices.SortFunc(ps, func(a, b view.Process) int {
			return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Rank, b.Rank))
		})
	}
	return out
}

// byMerit returns the place of each peer when the fastest is first, and of those that are
// about as fast the nearest: both are measured, and small differences mean nothing.
func byMerit(peers []PeerSlots) []int {
	class := func(p PeerSlots) int {
		if p.Speed <= 0 {
			return math.MinInt
		}
		return int(math.Round(math.Log(float64(p.Speed)) / math.Log(speedClass)))
	}
	order := make([]int, len(peers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(class(peers[b]), class(peers[a])), cmp.Compare(peers[a].RTT, peers[b].RTT))
	})
	return inverse(order)
}

// speedClass is how many times faster a peer has to be for that to count.
const speedClass = 1.25

// inverse returns the place of each index in a permutation.
func inverse(order []int) []int {
	place := make([]int, len(order))
	for i, o := range order {
		place[o] = i
	}
	return place
}

// together orders the peers by merit, but so that the groups of each width stay together:
// at the place of their best peer.
func together(groups [][]int, merit []int) []int {
	var best [][]int // of each width, that of a peer's group
	for _, group := range groups {
		of := map[int]int{}
		for i, g := range group {
			if b, ok := of[g]; !ok || merit[i] < b {
				of[g] = merit[i]
			}
		}
		places := make([]int, len(merit))
		for i, g := range group {
			places[i] = of[g]
		}
		best = append(best, places)
	}
	order := make([]int, len(merit))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		for _, places := range best {
			if c := cmp.Compare(places[a], places[b]); c != 0 {
				return c
			}
		}
		return cmp.Compare(merit[a], merit[b])
	})
	return order
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

// fill deals out up to want slots to peers with that much room, beside those that they have
// already, and returns how many each gets. No group that may fail together gets more than n in
// all, and where that leaves something over, it is dealt out with ever less care.
func (s Strategy) fill(groups [][]int, room, have []int, n, want int) []int {
	counts := make([]int, len(room))
	for width := 0; width <= len(groups) && want > 0; width++ {
		if width == len(groups) { // with no care at all
			s.deal(counts, room, want, func(int) bool { return true })
			break
		}
		group := groups[width]
		used := sum(group, have, counts)
		want -= s.deal(counts, room, want, func(i int) bool {
			used[group[i]]++
			return used[group[i]] <= n
		})
	}
	return counts
}

// deal adds up to want slots to counts, one by one where room allows for it and may says
// so, and returns how many. Once may has said no of a peer it does so again.
func (s Strategy) deal(counts, room []int, want int, may func(i int) bool) int {
	dealt := 0
	take := func(i, most int) {
		for counts[i] < min(most, room[i]) && dealt < want && may(i) {
			counts[i]++
			dealt++
		}
	}
	if s == Concentrate || s == DataConcentrate {
		for i := range counts {
			take(i, room[i])
		}
		return dealt
	}
	for pass := 1; pass <= slices.Max(append(room, 0)) && dealt < want; pass++ {
		for i := range counts {
			take(i, pass)
		}
	}
	return dealt
}
