package reservation

import (
	"fmt"
	"math/bits"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Need is what a job wants: N ranks of R replicas each.
type Need struct {
	Job      string // names the job among those of this submitter; at most 128 bytes
	N, R     int
	Strategy Strategy
}

func (n Need) validate() error {
	if n.N < 1 || n.R < 1 || n.N > view.MaxProcesses/n.R {
		return fmt.Errorf("n=%d r=%d: out of range", n.N, n.R)
	}
	if n.Job == "" || len(n.Job) > maxJobName {
		return fmt.Errorf("a job's name has 1 to %d bytes, not %d", maxJobName, len(n.Job))
	}
	return nil
}

// A Candidate is a peer worth asking, as its offer describes it.
type Candidate struct {
	Peer   p2ppeer.ID
	Slots  int   // advertised as free
	Cached int64 // bytes of the job's files that it has already
}

// An attempt is the pure core of Reserve: whom to ask for how many slots, and
// when that is enough.
//
//	next ---> asks ---> (peers) ---> granted | refused --+
//	  ^                                                  |
//	  +--------------------------------------------------+   until enough, or nobody is left
//
// It aims at more than it needs, n*r + 3*ceil(log2(n*r)) slots (the overbooking
// of P2P-MPI), and asks again elsewhere for whatever it is refused.
type attempt struct {
	need   Need
	target int
	peers  []asked // in the order of the strategy
}

// asked is a candidate and what came of asking it.
type asked struct {
	Candidate
	wanted  int // slots last asked for; 0 is not asked yet
	granted int // slots that it holds for us
	key     Key
	pending bool   // its answer is awaited
	reason  Reason // why it is out; 0 while it is not
}

// An ask is a Hold to send to attempt.peers[index].
type ask struct {
	index int
	slots int
}

func newAttempt(candidates []Candidate, need Need) *attempt {
	slots := need.N * need.R
	a := &attempt{need: need, target: slots + 3*bits.Len(uint(slots-1))}
	seen := map[p2ppeer.ID]bool{}
	for _, c := range candidates {
		if seen[c.Peer] {
			continue // named twice it would get two replicas of a rank
		}
		seen[c.Peer] = true
		a.peers = append(a.peers, asked{Candidate: c})
	}
	a.sort()
	return a
}

// sort puts the strategy's favourites first and, after all others, the peers
// that advertise nothing: they are worth a question, since an offer may be
// older than the freeing of a slot.
func (a *attempt) sort() {
	sorted := make([]asked, 0, len(a.peers))
	for _, i := range a.need.Strategy.order(a.slots(func(p asked) int { return p.Slots })) {
		sorted = append(sorted, a.peers[i])
	}
	slices.SortStableFunc(sorted, func(x, y asked) int { return min(1, max(0, y.Slots)) - min(1, max(0, x.Slots)) })
	a.peers = sorted
}

// slots returns every peer with as many slots as count says.
func (a *attempt) slots(count func(asked) int) []PeerSlots {
	ps := make([]PeerSlots, len(a.peers))
	for i, p := range a.peers {
		ps[i] = PeerSlots{Slots: count(p), Cached: p.Cached}
	}
	return ps
}

// next returns what to ask now, and takes it as asked: peers that were not
// asked yet, dealt out as the strategy deals out processes, then more from
// those that gave all they were asked for.
func (a *attempt) next() []ask {
	if a.enough() {
		return nil
	}
	asks := a.deal(func(p asked) int {
		if p.wanted > 0 {
			return 0
		}
		return max(1, p.Slots)
	})
	return append(asks, a.deal(func(p asked) int {
		if p.pending || p.reason != 0 || p.granted == 0 || p.granted < p.wanted {
			return 0
		}
		return p.Slots - p.granted
	})...)
}

// deal shares out what is still missing among peers with that much room.
func (a *attempt) deal(room func(asked) int) []ask {
	free := make([]int, len(a.peers))
	for i, p := range a.peers {
		free[i] = max(0, min(room(p), a.need.N-p.granted))
	}
	var asks []ask
	for i, more := range a.need.Strategy.fill(free, a.target-a.expected()) {
		if more > 0 {
			p := &a.peers[i]
			p.wanted, p.pending = p.granted+more, true
			asks = append(asks, ask{index: i, slots: p.wanted})
		}
	}
	return asks
}

// expected counts the slots that are granted, and asked for and not refused.
func (a *attempt) expected() int {
	sum := 0
	for _, p := range a.peers {
		if p.pending {
			sum += p.wanted
		} else {
			sum += p.granted
		}
	}
	return sum
}

// granted takes a peer's answer. What goes beyond the question is ignored.
func (a *attempt) granted(index int, g Grant) {
	if g.Slots < 1 {
		a.refused(index, Malformed)
		return
	}
	p := &a.peers[index]
	p.pending = false
	p.granted, p.key = min(g.Slots, p.wanted), g.Key
}

// refused takes a peer's refusal, or its silence. A peer that was asked for more
// keeps what it gave before, but is not asked again.
func (a *attempt) refused(index int, why Reason) {
	p := &a.peers[index]
	p.pending = false
	if p.granted == 0 {
		p.reason = why
	}
}

// pending reports whether an answer is awaited.
func (a *attempt) pending() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending })
}

// found counts the granted slots that are of use.
func (a *attempt) found() (peers, slots int) {
	for _, p := range a.peers {
		if p.granted > 0 {
			peers++
			slots += usable(p.granted, a.need.N)
		}
	}
	return peers, slots
}

// enough reports whether every process can be placed.
func (a *attempt) enough() bool {
	_, slots := a.found() // n at most on each, so they are on r peers at least
	return slots >= a.need.N*a.need.R
}

// place deals out the processes to what is granted, peers without any left out.
func (a *attempt) place() ([]Placement, error) {
	assignment, err := a.need.Strategy.Assign(a.slots(func(p asked) int { return p.granted }), a.need.N, a.need.R)
	if err != nil {
		return nil, err
	}
	var placed []Placement
	for i, ps := range assignment {
		if len(ps) > 0 {
			placed = append(placed, Placement{Peer: a.peers[i].Peer, Key: a.peers[i].key, Processes: ps})
		}
	}
	return placed, nil
}

// confirmed takes what became of a placement's Confirm: the peer is out, or now
// holds the slots of these processes only; if others are out it can be asked
// for more.
func (a *attempt) confirmed(p Placement, err error) {
	i := slices.IndexFunc(a.peers, func(q asked) bool { return q.Peer == p.Peer })
	if err != nil {
		a.peers[i].granted, a.peers[i].reason = 0, reasonOf(err)
		return
	}
	a.peers[i].granted, a.peers[i].wanted = len(p.Processes), len(p.Processes)
}

// unused returns the peers that may hold slots for us which placed does not
// use: those that granted some, and those whose answer never came.
func (a *attempt) unused(placed []Placement) (granted, silent []p2ppeer.ID) {
	used := map[p2ppeer.ID]bool{}
	for _, p := range placed {
		used[p.Peer] = true
	}
	for _, p := range a.peers {
		switch {
		case used[p.Peer]:
		case p.reason == Silent:
			silent = append(silent, p.Peer)
		case p.key != Key{}:
			granted = append(granted, p.Peer)
		}
	}
	return granted, silent
}

// shortage says what was found and why not more.
func (a *attempt) shortage() *ShortageError {
	e := &ShortageError{Need: a.need, Considered: len(a.peers), Reasons: map[Reason]int{}}
	e.FoundPeers, e.FoundSlots = a.found()
	for _, p := range a.peers {
		if p.reason != 0 {
			e.Reasons[p.reason]++
		}
	}
	return e
}
