package filetransfer

import (
	"math/rand/v2"
	"slices"
	"time"
)

// How many units are requested ahead of their arrival.
const (
	// soleWindow is for the origin as the only source: 16 MiB fill a link of 1 Gbit/s with a round-trip
	// time of 100 ms.
	soleWindow = 64
	// memberWindow is for each of several members, and freshWindow for the origin while it gives each unit
	// to one peer only. Small windows keep the queues of slow links short.
	memberWindow = 4
	freshWindow  = 2
	// quickFactor multiplies memberWindow and freshWindow for a source that sends a unit within quickInterval
	// of the previous one. Otherwise these windows would not fill a fast link with a long round-trip time.
	quickFactor   = 4
	quickInterval = 250 * time.Millisecond
)

const (
	// memberTimeout is how long a fetch waits for a member before it requests everything from the origin. If
	// reaching the origin takes long, the wait is four times that time.
	memberTimeout = 3 * time.Second
	// starvationTimeout is how long nothing may arrive before a fetch requests units from the origin that it
	// has given to others.
	starvationTimeout = 30 * time.Second
	// originTimeout is how long a fetch that receives nothing leaves units to the peers to which the origin
	// gave them. The actual time is random, between half and one and a half times this value.
	originTimeout = 2 * time.Second
	// responseTimeout is how long a peer with unanswered requests may send nothing before its units are
	// requested elsewhere.
	responseTimeout = 5 * time.Second
	// endgame is how long a unit must have been requested before it is requested again, if there is
	// nothing else to request.
	endgame = time.Second
)

// origin is the source that has all units from the beginning: the submitter, whose link is slow and shared by
// all peers. The other sources are the members of the swarm, which fetch the same list for the same job.
const origin = 0

// A plan decides which units of a list one Fetch requests from which source, and in which order. It is a
// pure core: its caller owns the streams, the files and the clock, reports events, and sends the requests
// that next returns.
//
// A unit is missing, requested or done. It is requested from one source, or from two if every missing unit
// is already requested. Members report the units that they have; the rarest are requested first. From the
// origin, only units that no member has are requested, marked as fresh. The origin declines the units that it
// has given to other peers, and reports which units these are. So it sends each unit about once, to varying
// peers. If nothing arrives for a while, or no member can be reached at all, any missing unit is
// requested from the origin. Members at this peer's site are preferred; see near.go.
type plan struct {
	rng           *rand.Rand
	members       int           // members that are not given up, reachable or not
	originTimeout time.Duration // randomized originTimeout, which starts at gained
	gained        time.Duration // time when a unit last arrived or the origin was asked for any unit
	came          time.Duration // time when a unit, or bytes from the origin, last arrived
	begun         time.Duration
	reach         time.Duration // time that it took to reach the origin, or 0 before

	done   bitset
	left   int             // number of units that are not done
	first  int             // all units before it are done
	start  int             // unit at which the search for a unit of the origin starts
	taken  bitset          // units that the origin has given to other peers
	asked  []int8          // for each unit, number of sources that are asked for it and not silent
	since  []time.Duration // for each unit, time of its last request
	held   []int16         // for each unit, number of members that have it
	shared int             // number of members that have reported their units

	key    uint64             // key of this peer at its site; see near.go
	near   map[int]*neighbour // sources at this peer's site
	local  []int16            // for each unit, number of these sources that have it
	usual  time.Duration      // mean response time of sources at other sites, or 0 if unknown
	ticked time.Duration      // time of the last tick

	sources map[int]*source
}

// A source is a peer with an open stream.
type source struct {
	has    bitset        // nil until reported
	asked  []asking      // oldest first; answers arrive in that order
	heard  time.Duration // time of its last bytes, or of a request while no other one was unanswered
	silent bool
	last   time.Duration // time when its last unit arrived or the origin last declined
	quick  bool          // its last unit arrived within quickInterval of both its request and the previous unit
}

type asking struct {
	unit    int
	at      time.Duration
	counted bool // included in plan.asked
}

// newPlan returns a plan for units units, of which done are complete. No source has joined yet. Equal
// seeds lead to equal choices.
func newPlan(units int, done bitset, members int, seed uint64, now time.Duration) *plan {
	p := &plan{
		rng: rand.New(rand.NewPCG(seed, 0)), members: members, begun: now, came: now,
		done: done, left: units - done.count(), taken: newBitset(units),
		asked: make([]int8, units), since: make([]time.Duration, units), held: make([]int16, units),
		near: make(map[int]*neighbour), local: make([]int16, units), ticked: now,
		sources: make(map[int]*source),
	}
	if members > 0 {
		p.start = p.rng.IntN(max(units, 1))
	}
	p.wait(now)
	return p
}

func (p *plan) wait(now time.Duration) {
	p.gained = now
	p.originTimeout = originTimeout/2 + time.Duration(p.rng.Int64N(int64(originTimeout)))
}

// complete reports whether everything has arrived.
func (p *plan) complete() bool { return p.left == 0 }

// connected records a new stream to a source.
func (p *plan) connected(id int, now time.Duration) {
	p.sources[id] = &source{heard: now}
	if id == origin && p.reach == 0 {
		p.reach = max(now-p.begun, 1)
	}
}

// disconnected records that the stream to a source has ended. Its units are requested from other sources.
func (p *plan) disconnected(id int) {
	s := p.sources[id]
	if s == nil {
		return
	}
	p.forget(s)
	if s.has != nil {
		p.shared--
	}
	if !s.silent {
		p.count(id, s, -1)
	}
	delete(p.sources, id)
}

// count adds n to the number of holders of each unit that s has.
func (p *plan) count(id int, s *source, n int16) {
	if s.has == nil {
		return
	}
	for u := range p.held {
		if s.has.has(u) {
			p.countUnit(id, u, n)
		}
	}
}

func (p *plan) countUnit(id, u int, n int16) {
	p.held[u] += n
	if p.near[id] != nil {
		p.local[u] += n
	}
}

// givenUp records that there will be no more streams to a member.
func (p *plan) givenUp() { p.members-- }

// forget makes the unanswered requests to s available to other sources.
func (p *plan) forget(s *source) {
	for i, a := range s.asked {
		if a.counted {
			p.asked[a.unit]--
			s.asked[i].counted = false
		}
	}
}

// has records units that a member has. It reports whether the message contains news, as the first message
// of a member always does.
func (p *plan) has(id int, all bitset, more []uint32) (news bool) {
	s := p.sources[id]
	if s.has == nil {
		s.has = newBitset(len(p.held))
		p.shared++
		news = true
	}
	if len(all) > 0 { // usually empty after the first message
		for u := range p.held {
			if all.has(u) {
				news = p.holds(id, s, u) || news
			}
		}
	}
	for _, u := range more {
		news = p.holds(id, s, int(u)) || news
	}
	return news
}

func (p *plan) holds(id int, s *source, u int) (news bool) {
	if s.has.has(u) {
		return false
	}
	s.has.add(u)
	if !s.silent {
		p.countUnit(id, u, 1)
	}
	return true
}

// sending records that a source has sent some bytes of a requested unit.
func (p *plan) sending(id int, now time.Duration) {
	p.alive(id, p.sources[id], now)
	if id == origin {
		p.came = now
	}
}

// alive records a sign of life from a source: its units count again.
func (p *plan) alive(id int, s *source, now time.Duration) {
	s.heard = now
	if s.silent {
		s.silent = false
		p.count(id, s, 1)
	}
}

// tick updates the plan when time has passed without an event. A source with unanswered requests becomes
// silent after the time silence. Its units then do not count until it sends data or answers.
func (p *plan) tick(now time.Duration) {
	for id, s := range p.sources {
		if len(s.asked) > 0 && !s.silent && now-s.heard > responseTimeout {
			s.silent = true
			p.forget(s)
			p.count(id, s, -1)
		}
	}
	p.chargeNeighbours(now)
}

// arrived records that the oldest unit requested from the source has arrived and is verified.
func (p *plan) arrived(id int, now time.Duration) {
	p.wait(now)
	p.came = now
	s := p.sources[id]
	begun := s.asked[0].at
	s.quick = now-max(begun, s.last) < quickInterval
	p.took(id, now-begun)
	p.finish(p.answered(id, now))
}

// took records how long a source took to send a unit.
func (p *plan) took(id int, d time.Duration) {
	switch n := p.near[id]; {
	case n != nil:
		n.units++
	case p.usual == 0:
		p.usual = d
	default:
		p.usual += (min(d, 2*p.usual) - p.usual) / 4
	}
}

// found records that the unit that next has just returned is already present and was not requested.
func (p *plan) found(id int) {
	s := p.sources[id]
	last := len(s.asked) - 1
	u := s.asked[last].unit
	s.asked = s.asked[:last]
	p.asked[u]--
	p.finish(u)
}

func (p *plan) finish(u int) {
	if p.done.has(u) {
		return
	}
	p.done.add(u)
	p.left--
	for p.first < len(p.held) && p.done.has(p.first) {
		p.first++
	}
}

// declined records that the origin has given the oldest requested unit, and the units in taken, to other
// peers.
func (p *plan) declined(taken bitset, now time.Duration) {
	u := p.answered(origin, now)
	copy(p.taken, taken)
	p.taken.add(u)
}

// answered removes the oldest unit from the source's requests. The answer may have arrived long ago and
// waited for the disk while the source counted as silent.
func (p *plan) answered(id int, now time.Duration) int {
	s := p.sources[id]
	p.alive(id, s, now)
	s.last = now
	a := s.asked[0]
	s.asked = s.asked[1:]
	if a.counted {
		p.asked[a.unit]--
	}
	return a.unit
}

// next returns a unit to request from the source now, if there is one. The caller calls next until ok is
// false: for a source after every event that concerns it, and for all sources after tick and disconnected.
func (p *plan) next(id int, now time.Duration) (u int, fresh, ok bool) {
	s := p.sources[id]
	if s == nil || s.silent || len(s.asked) >= p.window(id, now) {
		return 0, false, false
	}
	switch {
	case id != origin:
		u = p.selectFromMember(id, s, now)
	case p.sharing(now):
		u, fresh = p.selectFromOrigin(now), true
	default:
		u = p.find(p.first, func(u int) bool { return p.asked[u] == 0 })
	}
	if u < 0 {
		return 0, false, false
	}
	if len(s.asked) == 0 {
		s.heard = now
	}
	s.asked = append(s.asked, asking{unit: u, at: now, counted: true})
	p.asked[u]++
	p.since[u] = now
	return u, fresh, true
}

func (p *plan) window(id int, now time.Duration) int {
	n := memberWindow
	if id == origin {
		if !p.sharing(now) {
			return soleWindow
		}
		n = freshWindow
	}
	if p.sources[id].quick {
		n *= quickFactor
	}
	return n
}

// sharing reports whether units that the origin has given to others may arrive from them. It returns
// false if nothing has arrived for a long time.
func (p *plan) sharing(now time.Duration) bool {
	return p.supplied(now) || now-p.came < starvationTimeout && p.members > 0 && now-p.begun < max(memberTimeout, 4*p.reach)
}

// supplied reports whether members are reachable and something has arrived recently.
func (p *plan) supplied(now time.Duration) bool {
	return now-p.came < starvationTimeout && p.shared > 0
}

// find returns the first missing unit for which ok returns true, searching cyclically from from. It
// returns -1 if there is no such unit.
func (p *plan) find(from int, ok func(u int) bool) int {
	n := len(p.held)
	for i := range n {
		u := from + i
		if u >= n {
			u -= n
		}
		if !p.done.has(u) && ok(u) {
			return u
		}
	}
	return -1
}

// selectFromOrigin selects a unit that no other peer is known to have. If nothing has arrived for
// originTimeout, it also selects other missing units: first those that this peer may bring into its site and
// that are not requested, then those requested long ago.
func (p *plan) selectFromOrigin(now time.Duration) int {
	if u := p.fresh(); u >= 0 {
		return u
	}
	if now-p.gained < p.originTimeout {
		return -1
	}
	p.wait(now)
	clear(p.taken) // by now, the other peers have passed these units on or are not going to
	p.start = p.rng.IntN(len(p.held))
	if u := p.fresh(); u >= 0 {
		return u
	}
	if u := p.find(p.start, func(u int) bool { return p.asked[u] == 0 && p.enters(u) }); u >= 0 {
		return u
	}
	asked := p.sources[origin].asked
	return p.find(p.start, func(u int) bool { return p.asked[u] > 0 && p.late(u, false, now) && !isAsked(asked, u) })
}

// fresh returns the next unit that no other peer is known to have, or -1.
func (p *plan) fresh() int {
	u := p.find(p.start, func(u int) bool { return p.asked[u] == 0 && p.held[u] == 0 && !p.taken.has(u) })
	if u >= 0 {
		p.start = (u + 1) % len(p.held)
	}
	return u
}

// selectFromMember selects the rarest unit that the member has, or a random one of the rarest. If every unit
// that the member has is already requested, it selects one that was requested long ago. From a member at
// another site it does so only if every missing unit is requested, or if the request is very old, because
// each copy takes time on a slow link.
func (p *plan) selectFromMember(id int, s *source, now time.Duration) int {
	if s.has == nil {
		return -1
	}
	near := p.near[id] != nil
	best, ties := -1, 0
	late, idle := -1, near || p.idle()
	for u := p.first; u < len(p.held); u++ {
		if p.done.has(u) || !s.has.has(u) || !near && !p.enters(u) {
			continue
		}
		switch {
		case p.asked[u] == 1 && best < 0 && p.late(u, near, now) && (idle || p.tooLate(u, now)) &&
			(late < 0 || p.since[u] < p.since[late]):
			if !isAsked(s.asked, u) {
				late = u
			}
		case p.asked[u] > 0:
		case best < 0 || p.held[u] < p.held[best]:
			best, ties = u, 1
		case p.held[u] == p.held[best]:
			if ties++; p.rng.IntN(ties) == 0 {
				best = u
			}
		}
	}
	if best < 0 {
		return late
	}
	return best
}

// late reports whether a unit was requested so long ago that it may be requested again, from a neighbour
// or from another site.
func (p *plan) late(u int, near bool, now time.Duration) bool {
	if near {
		return now-p.since[u] > endgame
	}
	return now-p.since[u] > max(endgame, 2*p.usual)
}

// tooLate reports whether a unit was requested from another site so long ago that its source counts as
// too slow.
func (p *plan) tooLate(u int, now time.Duration) bool {
	return now-p.since[u] > max(responseTimeout, 4*p.usual)
}

// idle reports whether every missing unit is requested.
func (p *plan) idle() bool {
	return p.find(p.first, func(u int) bool { return p.asked[u] == 0 }) < 0
}

func isAsked(asked []asking, u int) bool {
	return slices.ContainsFunc(asked, func(a asking) bool { return a.unit == u })
}
