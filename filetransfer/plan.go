package filetransfer

import (
	"math/rand/v2"
	"time"
)

// How many units are requested ahead of their arrival.
const (
	// soleWindow is for the only source: 16 MiB fill a link of 1 Gbit/s with a round-trip time of 100 ms.
	soleWindow = 64
	// fellowWindow is for each of several fellows, and freshWindow for the origin while it gives each unit
	// to one peer only. Small windows keep the queues of slow links short.
	fellowWindow = 4
	freshWindow  = 2
	// quickFactor enlarges these for a source that sends a unit within quickly of the one before it: the
	// windows would not fill a fast link with a long round-trip time.
	quickFactor = 4
	quickly     = 250 * time.Millisecond
)

const (
	// grace is how long a fetch waits for a fellow before it takes everything
	// from the origin; where the origin is slow to reach, four times as long as that took.
	grace = 3 * time.Second
	// starving is how long nothing may come before a fetch asks the origin for what
	// it has given to others.
	starving = 30 * time.Second
	// patience is how long a fetch to which nothing comes leaves to others what
	// the origin has given to them; half of it to one and a half, by chance.
	patience = 2 * time.Second
	// silence is how long a peer that was asked may send nothing before others
	// are asked for the same.
	silence = 5 * time.Second
	// endgame is how long a unit must have been asked for before it is asked for
	// once more, when there is nothing else to ask.
	endgame = time.Second
)

// origin is the source that has everything from the beginning: the submitter,
// whose link is slow and for all. The other sources are fellows: peers that
// fetch the same for the same job.
const origin = 0

// A plan decides which units of a list one Fetch asks of whom, and in which
// order. It is a pure core: its caller owns the streams, the files and the
// clock, tells it what happened, and does what next says.
//
// A unit is missing, asked for (of one source; of two when there is nothing else
// to do), or done. Of fellows, which say what they have, the unit that fewest
// have is asked first. Of the origin only units that no fellow has are asked, as
// fresh: it refuses those that it has given to others and says which these are.
// So it sends each unit about once, and to ever other peers. When nothing comes
// for a while, or no fellow can be reached at all, the origin is asked for
// anything that is missing. Fellows at this peer's site are preferred: see near.go.
type plan struct {
	rng      *rand.Rand
	fellows  int           // that are not given up, in reach or not
	patience time.Duration // from gained on
	gained   time.Duration // when a unit came last, or the origin was asked in need
	came     time.Duration // when a unit came last, or bytes of one from the origin
	begun    time.Duration
	reach    time.Duration // how long it took to reach the origin; 0: not yet

	done   bitset
	left   int             // units that are not done
	first  int             // all units before it are done
	start  int             // where to look for a unit for the origin
	taken  bitset          // the origin has given to others
	asked  []int8          // how many sources a unit is asked of that are not silent
	since  []time.Duration // when it was asked last
	held   []int16         // how many fellows have a unit
	shared int             // fellows that have said what they have

	key    uint64            // of this peer at its site: see near.go
	near   map[int]*neighbor // the sources at its site
	local  []int16           // how many of these have a unit
	usual  time.Duration     // mean time in which sources at other sites answer a request; 0: not known
	ticked time.Duration     // when the last tick was

	sources map[int]*source
}

// A source is a peer to which there is a stream.
type source struct {
	has    bitset        // nil until it has said
	asked  []asking      // oldest first: answers come in that order
	heard  time.Duration // when it last sent bytes of a unit, or was asked with nothing else under way
	silent bool
	last   time.Duration // when its last unit came, or the origin declined
	quick  bool          // its last unit came within quickly of the request for it, and of the one before
}

type asking struct {
	unit    int
	at      time.Duration
	counted bool // in plan.asked
}

// newPlan plans for units units, of which those that are done are there. Nobody
// is in reach yet. Equal seeds make equal choices.
func newPlan(units int, done bitset, fellows int, seed uint64, now time.Duration) *plan {
	p := &plan{
		rng: rand.New(rand.NewPCG(seed, 0)), fellows: fellows, begun: now, came: now,
		done: done, left: units - done.count(), taken: newBitset(units),
		asked: make([]int8, units), since: make([]time.Duration, units), held: make([]int16, units),
		near: make(map[int]*neighbor), local: make([]int16, units), ticked: now,
		sources: make(map[int]*source),
	}
	if fellows > 0 {
		p.start = p.rng.IntN(max(units, 1))
	}
	p.wait(now)
	return p
}

func (p *plan) wait(now time.Duration) {
	p.gained = now
	p.patience = patience/2 + time.Duration(p.rng.Int64N(int64(patience)))
}

// complete reports whether everything has arrived.
func (p *plan) complete() bool { return p.left == 0 }

// joined takes note of a new stream to a source.
func (p *plan) joined(id int, now time.Duration) {
	p.sources[id] = &source{heard: now}
	if id == origin && p.reach == 0 {
		p.reach = max(now-p.begun, 1)
	}
}

// parted takes note that the stream has ended: others are asked.
func (p *plan) parted(id int) {
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

// count adds n to the number of fellows that have a unit, for all that s has.
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

// givenUp takes note that there will be no more streams to a fellow.
func (p *plan) givenUp() { p.fellows-- }

// forget has others asked for what is under way from s.
func (p *plan) forget(s *source) {
	for i, a := range s.asked {
		if a.counted {
			p.asked[a.unit]--
			s.asked[i].counted = false
		}
	}
}

// has takes note of units that a fellow has. It reports whether that is news, as
// the first word of a fellow always is.
func (p *plan) has(id int, all bitset, more []uint32) (news bool) {
	s := p.sources[id]
	if s.has == nil {
		s.has = newBitset(len(p.held))
		p.shared++
		news = true
	}
	if len(all) > 0 { // usually there are a few more only
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

// sending takes note that a source has sent some bytes of what it was asked for.
func (p *plan) sending(id int, now time.Duration) {
	p.alive(id, p.sources[id], now)
	if id == origin {
		p.came = now
	}
}

// alive takes note of a sign of life: what a source has counts again.
func (p *plan) alive(id int, s *source, now time.Duration) {
	s.heard = now
	if s.silent {
		s.silent = false
		p.count(id, s, 1)
	}
}

// tick takes note of the time, which moves on without anything happening. What a
// silent fellow has counts as had by nobody, until it sends some of it or answers.
func (p *plan) tick(now time.Duration) {
	for id, s := range p.sources {
		if len(s.asked) > 0 && !s.silent && now-s.heard > silence {
			s.silent = true
			p.forget(s)
			p.count(id, s, -1)
		}
	}
	p.chargeNeighbors(now)
}

// arrived takes note that the unit that the source was asked for first is here and
// verified.
func (p *plan) arrived(id int, now time.Duration) {
	p.wait(now)
	p.came = now
	s := p.sources[id]
	begun := s.asked[0].at
	s.quick = now-max(begun, s.last) < quickly
	p.took(id, now-begun)
	p.finish(p.answered(id, now))
}

// took takes note of how long a source took to send a unit.
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

// found takes note that the unit that next has just returned is here already,
// and was not asked for.
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

// declined takes note that the origin has given what it was asked for first, and the units
// in taken, to others.
func (p *plan) declined(taken bitset, now time.Duration) {
	u := p.answered(origin, now)
	copy(p.taken, taken)
	p.taken.add(u)
}

// answered takes the first unit off the list of what the source was asked. The answer may
// have come long ago, and waited for the disk while the source was taken for silent.
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

// next returns a unit to ask of the source now, if there is one: to be called
// until there is none, for each source after all that concerns it, and for all
// after tick and parted.
func (p *plan) next(id int, now time.Duration) (u int, fresh, ok bool) {
	s := p.sources[id]
	if s == nil || s.silent || len(s.asked) >= p.window(id, now) {
		return 0, false, false
	}
	switch {
	case id != origin:
		u = p.ofFellow(id, s, now)
	case p.sharing(now):
		u, fresh = p.ofOrigin(now), true
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
	n := fellowWindow
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

// sharing reports whether what the origin gives to others may come from them. When
// nothing has come for long, they do not pass it on.
func (p *plan) sharing(now time.Duration) bool {
	return p.supplied(now) || now-p.came < starving && p.fellows > 0 && now-p.begun < max(grace, 4*p.reach)
}

// supplied reports whether fellows are in reach, and something has come of late.
func (p *plan) supplied(now time.Duration) bool { return now-p.came < starving && p.shared > 0 }

// find returns the first unit from from on, and around, that is missing and ok,
// or -1.
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

// ofOrigin chooses a unit that nobody else has, as far as is known, or in need
// any that is missing.
func (p *plan) ofOrigin(now time.Duration) int {
	if u := p.fresh(); u >= 0 {
		return u
	}
	if now-p.gained < p.patience {
		return -1
	}
	p.wait(now)
	clear(p.taken) // others may have it by now, or never
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

// fresh returns the next unit that nobody has, as far as is known, or -1.
func (p *plan) fresh() int {
	u := p.find(p.start, func(u int) bool { return p.asked[u] == 0 && p.held[u] == 0 && !p.taken.has(u) })
	if u >= 0 {
		p.start = (u + 1) % len(p.held)
	}
	return u
}

// ofFellow chooses the unit that fewest fellows have, one of them by chance.
// When every unit that the fellow has is already requested, it chooses one that was requested long ago. At
// another site it does so only if every missing unit is requested, or if that was very long ago, because each
// copy takes time on a slow link.
func (p *plan) ofFellow(id int, s *source, now time.Duration) int {
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

// late reports whether a unit was requested so long ago that it is requested once more: from a
// neighbor, or from another site.
func (p *plan) late(u int, near bool, now time.Duration) bool {
	if near {
		return now-p.since[u] > endgame
	}
	return now-p.since[u] > max(endgame, 2*p.usual)
}

// tooLate reports whether a unit was requested from another site so long ago that its source counts as too slow.
func (p *plan) tooLate(u int, now time.Duration) bool {
	return now-p.since[u] > max(silence, 4*p.usual)
}

// idle reports whether every missing unit is requested.
func (p *plan) idle() bool {
	return p.find(p.first, func(u int) bool { return p.asked[u] == 0 }) < 0
}

func isAsked(asked []asking, u int) bool {
	for _, a := range asked {
		if a.unit == u {
			return true
		}
	}
	return false
}
