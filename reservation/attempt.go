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

// A Need is what a job wants: N ranks of R replicas each.
type Need struct {
	Job      string // names the job among those of this submitter; at most 128 bytes
	N, R     int
	Strategy Strategy
	// Since is when the job began to wait for slots. Jobs in the queues of peers come
	// first if they began earlier. Zero: now.
	Since time.Time
	// Waits has the job stand in the queues of the peers that have no slots for it, until
	// Reserve succeeds or finds it hopeless, or Leave. It is for a caller who tries again, and
	// not after a shortage that was Hopeless: the job would only be in the way of others.
	Waits bool
	// Kinds are those of the job's programs, for the policies of the peers' owners.
	Kinds []string
	// NotOn are machines that run none of the processes, by their Grant.Machine.
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

// A Candidate is a peer worth asking, as its offer describes it.
type Candidate struct {
	Peer   p2ppeer.ID
	Slots  int           // advertised as free
	Total  int           // advertised, free or not
	Cached int64         // bytes of the job's files that it has already
	Speed  int           // of a processor, in any unit; 0: unknown
	RTT    time.Duration // to it
	Domain Domain
	// Unheard says that it did not answer the job's last attempt: it is asked again, and waited for
	// no longer than others take, since their slots are held meanwhile.
	Unheard bool
}

// maxCandidates bounds the candidates that are remembered for a job that waits.
const maxCandidates = 1024

// Remember returns the candidates of a search, and after them those of earlier ones that it
// does not name, as if they had nothing free. A job that waits in queues needs them all:
// a search ends when it has seen slots enough, which may be kept for others, and what is kept
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

// An attempt is the pure core of Reserve: whom to ask for how many slots, and
// when that is enough.
//
//	next ---> asks ---> (peers) ---> granted | refused --+
//	  ^                                                  |
//	  +--------------------------------------------------+   until enough, or nobody is left
//
// It aims at more than it needs, n*r + 3*ceil(log2(n*r)) slots (the overbooking
// of P2P-MPI), and asks again elsewhere for whatever it is refused, and does not hear of in
// time. When many are refused it asks for as much more: see acceptance.
type attempt struct {
	need   Need
	target int
	peers  []asked // in the order of the strategy
	groups [][]int // of peers
	best   []int   // of groups, that in which the candidates could be all apart; nil: they could not, or are anyway
	took   []time.Duration
}

// asked is a candidate and what came of asking it.
type asked struct {
	Candidate
	wanted  int // slots last asked for; 0 is not asked yet
	granted int // slots that it holds for us
	key     Key
	machine string // empty: unknown
	pending bool   // its answer is awaited
	late    bool   // for longer than others take
	reason  Reason // why it is out; 0 while it is not
	place   Place  // in its queue
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
	a.groups, a.best = groups(a.slots(func(p asked) int { return p.Slots }), need.N, slots)
	return a
}

// hopeless reports whether the candidates would not suffice even if all slots of those that may
// have some later were free: then there is nothing to wait for.
func (a *attempt) hopeless() bool {
	slots := 0
	for _, p := range a.peers {
		if p.reason == 0 || p.reason == Busy || p.reason == MaxJobs {
			slots += usable(max(p.Slots, p.Total), a.need.N)
		}
	}
	return slots < a.need.N*a.need.R
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
		ps[i] = PeerSlots{Slots: count(p), Cached: p.Cached, Speed: p.Speed, RTT: p.RTT, Domain: p.Domain, Machine: p.machine}
	}
	return ps
}

// next returns what to ask now, and takes it as asked: peers that were not
// asked yet, dealt out as the strategy deals out processes, then more from
// those that gave all they were asked for.
func (a *attempt) next() []ask {
	if a.enough() && !a.waits() {
		return nil
	}
	asks := a.deal(func(p asked) int {
		switch {
		case p.wanted > 0:
			return 0
		case p.Slots < 1:
			return max(1, a.most(p))
		}
		return p.Slots
	})
	return append(asks, a.deal(func(p asked) int {
		if p.pending || p.reason != 0 || p.granted == 0 || p.granted < p.wanted {
			return 0
		}
		return max(p.Slots, p.Total) - p.granted // its offer may be old
	})...)
}

// most is how many slots a peer may have for the job: of those that it will have, if that waits.
func (a *attempt) most(p asked) int {
	if a.need.Waits {
		return max(p.Slots, p.Total)
	}
	return p.Slots
}

// deal shares out what is still missing among peers with that much room.
func (a *attempt) deal(room func(asked) int) []ask {
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

// expected counts the slots that are granted, and asked for and not refused.
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

// acceptance is the share of slots asked for that are granted, at least one in ten. Until
// much is known it is near one.
func (a *attempt) acceptance() float64 {
	const doubt = 4 // slots
	wanted, granted := doubt, doubt
	for _, p := range a.peers {
		if p.wanted > 0 && (!p.pending || p.late) {
			wanted += p.wanted
			granted += p.granted
		}
	}
	return max(0.1, float64(granted)/float64(wanted))
}

// Bounds of patience, and how many times longer than half of the peers one may take.
const (
	minPatience   = 150 * time.Millisecond
	firstPatience = 500 * time.Millisecond
	maxPatience   = time.Second
	patienceTimes = 4
)

// patience is how long a peer may take for its answer before others are asked in its
// place: a few times as long as the others take.
func (a *attempt) patience() time.Duration {
	if len(a.took) == 0 {
		return firstPatience
	}
	slices.Sort(a.took)
	return min(max(minPatience, patienceTimes*a.took[len(a.took)/2]), maxPatience)
}

// answered takes how long an answer took.
func (a *attempt) answered(took time.Duration) { a.took = append(a.took, took) }

// overdue takes that a peer's answer is late. It still counts when it comes.
func (a *attempt) overdue(index int) { a.peers[index].late = true }

// granted takes a peer's answer. What goes beyond the question is ignored, and what goes beyond N slots
// on one machine: it is given back.
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

// roomFor is how many processes a peer may run beside those of other peers on its machine.
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

// refused takes a peer's refusal, or its silence. A peer that was asked for more
// keeps what it gave before, but is not asked again.
func (a *attempt) refused(index int, why Reason) {
	p := &a.peers[index]
	p.pending, p.late = false, false
	if p.granted == 0 {
		p.reason = why
	}
}

// queued takes a peer's refusal for now.
func (a *attempt) queued(index int, q *Queued) {
	a.peers[index].place = q.Place
	a.refused(index, q.Reason)
}

// pending reports whether an answer is awaited.
func (a *attempt) pending() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending })
}

// awaited reports whether an answer is awaited that may come any moment.
func (a *attempt) awaited() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending && !p.late })
}

// hoped reports whether an answer is awaited that is worth waiting for, however late.
func (a *attempt) hoped() bool {
	return slices.ContainsFunc(a.peers, func(p asked) bool { return p.pending && !(p.late && p.Unheard) })
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

// waits reports whether it is worth waiting for other answers though there is room for every process: what is
// granted has replicas of a rank together, and what is awaited, or was not asked yet, may part them.
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

// place deals out the processes to what is granted, peers without any left out.
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
// use, or have the job in their queue: those that have answered so, and those whose answer never
// came or that only an earlier attempt may have asked.
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

// shortage says what was found and why not more.
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
