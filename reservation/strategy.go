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

// A Strategy defines how a job's processes are distributed over peers. The strategies are those of P2P-MPI. None
// of them puts two replicas of a rank on one machine.
type Strategy byte

// The strategies. Those that begin with Data prefer the peers whose caches have the most bytes of the
// job's files, instead of the nearest ones.
const (
	Spread          Strategy = iota // one process per peer in each pass over the peers: most memory and bandwidth
	Concentrate                     // fills each peer before the next: short distances
	DataSpread                      // Spread, ordered by cached bytes
	DataConcentrate                 // Concentrate, ordered by cached bytes
)

var strategyNames = [...]string{"spread", "concentrate", "dataspread", "dataconcentrate"}

// String returns the name of s, in the form that ParseStrategy accepts.
func (s Strategy) String() string {
	if int(s) < len(strategyNames) {
		return strategyNames[s]
	}
	return fmt.Sprintf("strategy %d", byte(s))
}

// ParseStrategy parses the name of a strategy.
func ParseStrategy(name string) (Strategy, error) {
	if i := slices.Index(strategyNames[:], name); i >= 0 {
		return Strategy(i), nil
	}
	return 0, fmt.Errorf("strategy %q: want one of %s", name, strings.Join(strategyNames[:], ", "))
}

// The errors if peers do not suffice for n ranks of r replicas.
var (
	errFewPeers = errors.New("fewer machines than replicas of a rank")
	errFewSlots = errors.New("too few slots")
)

// PeerSlots is a Strategy's view of a peer.
type PeerSlots struct {
	Slots  int           // slots for the job
	Cached int64         // bytes of the job's files in its cache
	Speed  int           // speed of one processor, in any unit; 0 if unknown
	RTT    time.Duration // round-trip time from the submitter
	Domain Domain
	// Machine is equal for peers on one machine. A peer whose Machine is empty (unknown) counts as a machine
	// of its own.
	Machine string
}

// An Assignment holds the processes of each peer, in the order given.
type Assignment [][]view.Process

// Assign distributes the n*r processes over peers, which are given nearest first.
//
// Peers on one machine count as one peer and share its processes in order.
//
// The strategy determines how many processes each peer gets, with one exception, which concerns groups of
// peers that may fail together (see Domain). Such a group gets more than n only if the other peers have
// no room for the rest. The groups are the same for all strategies. The processes of one peer belong to
// different ranks, and so do the processes of a group that has at most n. The master of a rank (replica 0)
// runs on the fastest of the rank's peers; among equally fast peers, on the nearest. The fastest peers run
// the masters of most ranks.
//
// So replicas of a rank are never on one machine. If the slots allow it, they are also in different
// failure domains: no two share an owner, address or site. Otherwise Assign relaxes these criteria step
// by step, in the order of widths, or of ownersFirst if owners are verified. Unverified claims of owner,
// site and address cannot join the groups of other peers.
//
// It fails if there are too few peers or slots; the error contains the numbers. Slots of a peer above n
// are not used.
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

// number assigns counts[i] processes to each peer i. The processes are numbered 0..n*r-1, and number m
// has rank m mod n. Each peer, and each group of peers that may fail together, gets consecutive numbers.
// So no peer or group with at most n processes has a rank twice.
func number(peers []PeerSlots, groups [][]int, counts []int, n int) [][]view.Process {
	merit := byMerit(peers)
	holders := make([][]int, n) // peers of each rank
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

// byMerit returns the position of each peer in the order of speed. Peers of about the same speed are
// ordered by distance, because small differences between measurements mean nothing.
func byMerit(peers []PeerSlots) []int {
	class := func(p PeerSlots) int {
		if p.Speed <= 0 {
			return math.MinInt
		}
		return int(math.Round(math.Log(float64(p.Speed)) / math.Log(speedClass)))
	}
	order := indices(len(peers))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(class(peers[b]), class(peers[a])), cmp.Compare(peers[a].RTT, peers[b].RTT))
	})
	return inverse(order)
}

// speedClass is the least ratio of two peers' speeds that counts as a difference.
const speedClass = 1.25

// indices returns the numbers below n.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// inverse returns the position of each index in a permutation.
func inverse(order []int) []int {
	place := make([]int, len(order))
	for i, o := range order {
		place[o] = i
	}
	return place
}

// together orders the peers by merit, but keeps the groups of each width together, at the position of
// their best peer.
func together(groups [][]int, merit []int) []int {
	var best [][]int // for each width, the best merit in each peer's group
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
	order := indices(len(merit))
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

// usable returns how many of a peer's slots a job of n ranks can use.
func usable(slots, n int) int { return max(0, min(slots, n)) }

// suffices returns an error unless room, limited to n per peer, is enough for n*r processes.
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
		return fmt.Errorf("%w: %d of %d", errFewPeers, peers, r)
	case slots < n*r:
		return fmt.Errorf("%w: %d of %d", errFewSlots, slots, n*r)
	}
	return nil
}

func (s Strategy) order(peers []PeerSlots) []int {
	order := indices(len(peers))
	if s == DataSpread || s == DataConcentrate {
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(peers[b].Cached, peers[a].Cached)
		})
	}
	return order
}

// fill distributes up to want slots over peers with the given room, in addition to those that they have,
// and returns the number for each. First no group of the widest width gets more than n in all. The remaining
// slots are distributed by the narrower widths, and finally without that restriction.
func (s Strategy) fill(groups [][]int, room, have []int, n, want int) []int {
	counts := make([]int, len(room))
	for width := 0; width <= len(groups) && want > 0; width++ {
		if width == len(groups) { // without restriction
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

// deal adds up to want slots to counts, one by one, where room and may allow it, and returns how many it
// added. Once may has returned false for a peer, it keeps doing so.
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
