package reservation

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Need states the slots that a job needs: for N ranks with R replicas each.
type Need struct {
	Job      string // unique among this submitter's jobs; at most 128 bytes
	N, R     int
	Strategy Strategy
	// Since is when the job began to wait for slots. In a peer's queue, jobs that began earlier come
	// first. The zero time means now.
	Since time.Time
	// Waits puts the job into the queue of each peer that has no slots for it. The job stays there until
	// Reserve succeeds or finds it hopeless, or until Leave is called. Set Waits only if the caller tries
	// again. Clear Waits after a shortage that was Hopeless, when the job would only block others.
	Waits bool
	// Kinds lists the kinds of the job's programs, for the policies of the peers' owners.
	Kinds []string
	// NotOn lists machines (see Grant.Machine) that must run none of the processes.
	NotOn []string
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

// A Candidate is a peer to ask for slots, as its offer describes it.
type Candidate struct {
	Peer   p2ppeer.ID
	Slots  int           // advertised free slots
	Total  int           // advertised slots, free or not
	Cached int64         // bytes of the job's files in its cache
	Speed  int           // speed of one processor, in any unit; 0 if unknown
	RTT    time.Duration // round-trip time from the submitter
	Domain Domain
	// Unheard marks a peer that did not answer the job's last attempt. The peer is asked again, but the
	// attempt waits for it no longer than for the others, because their slots are held meanwhile.
	Unheard bool
}

// maxCandidates bounds the candidates that are remembered for a waiting job.
const maxCandidates = 1024

// Remember returns the candidates of a search, followed by the candidates of earlier searches that it did
// not find. The earlier ones count as having no free slots. A job that waits in queues needs all of them. A
// search ends once it has seen enough slots, but these slots may be kept for other jobs, and the slots kept
// for this job may be elsewhere.
func Remember(found, before []Candidate) []Candidate {
	all, named := slices.Clone(found), make(map[p2ppeer.ID]bool)
	for _, c := range found {
		named[c.Peer] = true
	}
	for _, c := range before {
		if !named[c.Peer] && len(all) < maxCandidates {
			c.Slots = 0
			all = append(all, c)
		}
	}
	return all
}

// An attempt is the pure core of Reserve. It decides which peers to ask, for how many slots, and when the
// granted slots are enough.
//
//	next ---> asks ---> (peers) ---> granted | refused --+
//	  ^                                                  |
//	  +--------------------------------------------------+   until enough, or no peer is left
//
// Its target is more than the job needs: n*r + 3*ceil(log2(n*r)) slots, the overbooking of P2P-MPI. An
// attempt asks other peers for slots that are refused or not granted in time. If many requests are refused,
// it asks for correspondingly more slots; see acceptance.
type attempt struct {
	need   Need
	target int
	peers  []asked // ordered by the strategy
	groups [][]int // failure domains of the peers, one numbering per width; see groups
	best   []int   // the element of groups that can separate all replicas of a rank, or nil
	took   []time.Duration
}

// asked is a candidate and the state of the requests to it.
type asked struct {
	Candidate
	wanted  int // slots last asked for, or 0 before the first request
	granted int // slots that the peer holds for the job
	key     Key
	machine string // name of its machine, or empty if unknown
	pending bool   // a request is unanswered
	late    bool   // the unanswered request exceeds responseTimeout
	reason  Reason // reason why the peer is excluded, or 0
	place   Place  // place in the peer's queue
}

// An ask is a Hold request to send to attempt.peers[index].
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
			continue // a duplicate would get two replicas of a rank
		}
		seen[c.Peer] = true
		a.peers = append(a.peers, asked{Candidate: c})
	}
	a.sort()
	a.groups, a.best = groups(a.slots(func(p asked) int { return p.Slots }), need.N, slots)
	return a
}

// hopeless reports whether the candidates would not suffice even if all their slots were free, so that
// waiting is useless. Only peers that may have slots later count.
func (a *attempt) hopeless() bool {
	slots := 0
	for _, p := range a.peers {
		if p.reason == 0 || p.reason == Busy || p.reason == MaxJobs {
			slots += usable(max(p.Slots, p.Total), a.need.N)
		}
	}
	return slots < a.need.N*a.need.R
}

// sort orders the peers by the strategy's preference. Peers that advertise no free slot come last. They
// are still asked, because a slot may have become free since the offer.
func (a *attempt) sort() {
	sorted := make([]asked, 0, len(a.peers))
	for _, i := range a.need.Strategy.order(a.slots(func(p asked) int { return p.Slots })) {
		sorted = append(sorted, a.peers[i])
	}
	slices.SortStableFunc(sorted, func(x, y asked) int { return min(1, max(0, y.Slots)) - min(1, max(0, x.Slots)) })
	a.peers = sorted
}

// slots returns the peers for a Strategy, each with count(peer) slots.
func (a *attempt) slots(count func(asked) int) []PeerSlots {
	ps := make([]PeerSlots, len(a.peers))
	for i, p := range a.peers {
		ps[i] = PeerSlots{Slots: count(p), Cached: p.Cached, Speed: p.Speed, RTT: p.RTT, Domain: p.Domain, Machine: p.machine}
	}
	return ps
}

// next returns the requests to send now and marks them as sent. It first asks new peers, distributing
// slots as the strategy distributes processes. Then it asks for more slots at peers that granted all slots
// of their last request.
func (a *attempt) next() []ask {
	if a.enough() && !a.waits() {
		return nil
	}
	asks := a.distribute(func(p asked) int {
		switch {
		case p.wanted > 0:
			return 0
		case p.Slots < 1:
			return max(1, a.most(p))
		}
		return p.Slots
	})
	return append(asks, a.distribute(func(p asked) int {
		if p.pending || p.reason != 0 || p.granted == 0 || p.granted < p.wanted {
			return 0
		}
		return max(p.Slots, p.Total) - p.granted // the offer may be outdated
	})...)
}

// most returns how many slots a peer may give to the job. For a job that waits, slots in use count as
// well.
func (a *attempt) most(p asked) int {
	if a.need.Waits {
		return max(p.Slots, p.Total)
	}
	return p.Slots
}

// distribute distributes the missing slots among the peers, up to room(peer) for each.
func (a *attempt) distribute(room func(asked) int) []ask {
	free, have := make([]int, len(a.peers)), make([]int, len(a.peers))
	any := false
	for i, p := range a.peers {
		free[i] = max(0, min(room(p), a.need.N-p.granted))
		have[i] = p.expected()
		any = any || free[i] > 0
	}
	want := a.target - a.expected()
	if !any || want <= 0 {
		return nil
	}
	var asks []ask
	for i, more := range a.need.Strategy.fill(a.groups, free, have, a.need.N, int(float64(want)/a.acceptance())) {
		if more > 0 {
			p := &a.peers[i]
			p.wanted, p.pending = p.granted+more, true
			asks = append(asks, ask{index: i, slots: p.wanted})
		}
	}
	return asks
}

// expected returns the number of slots that are granted, or asked for and likely to be granted.
func (a *attempt) expected() int {
	sum := 0
	for _, p := range a.peers {
		sum += p.expected()
	}
	return sum
}

func (p asked) expected() int {
	if p.pending && !p.late && !p.Unheard {
		return p.wanted
	}
	return p.granted
}

// acceptance returns the share of requested slots that were granted, at least 0.1. It starts near 1 and
// moves with the answers.
func (a *attempt) acceptance() float64 {
	const doubt = 4 // slots: weight of the initial assumption
	wanted, granted := doubt, doubt
	for _, p := range a.peers {
		if p.wanted > 0 && (!p.pending || p.late) {
			wanted += p.wanted
			granted += p.granted
		}
	}
	return max(0.1, float64(granted)/float64(wanted))
}

// Bounds of responseTimeout, and its ratio to the median response time.
const (
	minResponseTimeout    = 150 * time.Millisecond
	firstResponseTimeout  = 500 * time.Millisecond
	maxResponseTimeout    = time.Second
	responseTimeoutFactor = 4
)

// responseTimeout returns how long a peer may take to answer before the attempt asks others in its place: a
// multiple of the median response time.
func (a *attempt) responseTimeout() time.Duration {
	if len(a.took) == 0 {
		return firstResponseTimeout
	}
	slices.Sort(a.took)
	return min(max(minResponseTimeout, responseTimeoutFactor*a.took[len(a.took)/2]), maxResponseTimeout)
}

func (a *attempt) answered(took time.Duration) { a.took = append(a.took, took) }

// overdue records that a peer's answer is late. The answer still counts when it arrives.
func (a *attempt) overdue(index int) { a.peers[index].late = true }

// granted records a peer's grant. It ignores slots beyond the request, and slots that would put more than
// N processes on one machine; the ignored slots are given back later.
func (a *attempt) granted(index int, g Grant) {
	if g.Slots < 1 {
		a.refused(index, Malformed)
		return
	}
	p := &a.peers[index]
	p.pending, p.late = false, false
	p.key, p.machine = g.Key, g.Machine
	p.granted = min(g.Slots, p.wanted, a.roomFor(index))
	if p.granted == 0 {
		p.reason = SameMachine
	}
}

// roomFor returns how many processes a peer may run beside those of other peers on its machine.
func (a *attempt) roomFor(index int) int {
	machine := a.peers[index].machine
	if machine == "" {
		return a.need.N
	}
	if slices.Contains(a.need.NotOn, machine) {
		return 0
	}
	room := a.need.N
	for i, p := range a.peers {
		if i != index && p.machine == machine {
			room -= p.granted
		}
	}
	return max(0, room)
}

// refused records a peer's refusal or silence. A peer that was asked for more keeps its earlier grant,
// but is not asked again.
func (a *attempt) refused(index int, why Reason) {
	p := &a.peers[index]
	p.pending, p.late = false, false
	if p.granted == 0 {
		p.reason = why
	}
}

// queued records a temporary refusal, with the job's place in the peer's queue.
func (a *attempt) queued(index int, q *queued) {
	a.peers[index].place = q.Place
	a.refused(index, q.Reason)
}

// pending reports whether a request is unanswered.
func (a *attempt) pending() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending })
}

// awaited reports whether a request is unanswered and not late.
func (a *attempt) awaited() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending && !p.late })
}

// worthWaiting reports whether an unanswered request is worth waiting for: it is not late, or its peer
// answered the last attempt.
func (a *attempt) worthWaiting() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending && !(p.late && p.Unheard) })
}

// found returns the granted slots that the job can use, and the number of peers that granted them.
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
	_, slots := a.found() // at most n count per peer, so the slots are on at least r peers
	return slots >= a.need.N*a.need.R
}

// waits reports whether to wait for further answers although every process can be placed: the granted slots
// would put replicas of a rank into one failure domain, and peers that have not answered or were not asked
// yet may separate them.
func (a *attempt) waits() bool {
	parts := func(count func(asked) int) bool {
		return apart(a.slots(count), a.best, a.need.N) >= a.need.N*a.need.R
	}
	if a.best == nil || parts(func(p asked) int { return p.granted }) {
		return false
	}
	more := a.expected() < a.target
	return parts(func(p asked) int {
		if p.pending || p.wanted == 0 && more {
			return max(p.wanted, p.Slots)
		}
		return p.granted
	})
}

// place assigns the processes to the granted slots. The result leaves out peers without processes.
func (a *attempt) place() ([]Placement, error) {
	assignment, err := a.need.Strategy.Assign(a.slots(func(p asked) int { return p.granted }), a.need.N, a.need.R)
	if err != nil {
		return nil, err
	}
	var placed []Placement
	for i, ps := range assignment {
		if len(ps) > 0 {
			placed = append(placed, Placement{Peer: a.peers[i].Peer, Key: a.peers[i].key, Processes: ps, Machine: a.peers[i].machine})
		}
	}
	return placed, nil
}

// confirmed records the result of a placement's Confirm. On failure, the peer is excluded. Otherwise it
// now holds slots for these processes only, and may be asked for more if other peers are excluded.
func (a *attempt) confirmed(p Placement, err error) {
	i := slices.IndexFunc(a.peers, func(q asked) bool { return q.Peer == p.Peer })
	if err != nil {
		a.peers[i].granted, a.peers[i].reason = 0, reasonOf(err)
		return
	}
	a.peers[i].granted, a.peers[i].wanted = len(p.Processes), len(p.Processes)
}

// unused returns the peers that placed does not use and that may hold slots for the job or have it in
// their queue. answered contains the peers that have answered. silent contains the peers that have not answered,
// and the peers that only an earlier attempt may have asked.
func (a *attempt) unused(placed []Placement) (answered, silent []p2ppeer.ID) {
	used := map[p2ppeer.ID]bool{}
	for _, p := range placed {
		used[p.Peer] = true
	}
	for _, p := range a.peers {
		switch {
		case used[p.Peer]:
		case p.reason == Silent, p.wanted == 0 && a.need.Waits && placed != nil:
			silent = append(silent, p.Peer)
		case p.key != Key{}, p.place != Place{} && (placed != nil || a.hopeless()):
			answered = append(answered, p.Peer)
		}
	}
	return answered, silent
}

// shortage returns an error that states how many slots were found and why they are not enough.
func (a *attempt) shortage() *ShortageError {
	e := &ShortageError{Need: a.need, Considered: len(a.peers), Reasons: map[Reason]int{}, Hopeless: a.hopeless()}
	e.FoundPeers, e.FoundSlots = a.found()
	var places []Place
	for _, p := range a.peers {
		o := Outcome{Peer: p.Peer, Slots: p.granted, Offers: usable(max(p.Slots, p.Total), a.need.N), Reason: p.reason}
		if p.reason != 0 {
			e.Reasons[p.reason]++
		}
		e.Outcomes = append(e.Outcomes, o)
		if p.place != (Place{}) {
			places = append(places, p.place)
		}
	}
	if len(places) > 0 {
		slices.SortFunc(places, func(x, y Place) int { return cmp.Or(x.Place-y.Place, x.Of-y.Of) })
		e.Place = places[len(places)/2]
	}
	return e
}
