package discovery

import (
	"cmp"
	"math"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Rehearsal runs the core of Candidates with simulated peers in virtual time, without a network. Its
// times are durations since the start.
type Rehearsal struct {
	Config Config // only Parallel, ParallelPerSlot and Grace are used
	Need   Need
	Near   []p2ppeer.ID  // peers known without a lookup, in the order of Candidates
	Hints  []Hint        // results of the lookup, ordered by time
	Ended  time.Duration // end of the lookup, which is not before the last hint
	Ask    func(p2ppeer.ID) Reply

	// Estimate returns the estimated distance of a peer, if known. It may be nil.
	Estimate func(p2ppeer.ID) (time.Duration, bool)
}

// A Hint is a record that the lookup finds.
type Hint struct {
	At   time.Duration
	Peer p2ppeer.ID
}

// A Reply is the result of asking one peer, and the time that it takes.
type Reply struct {
	After     time.Duration
	Candidate Candidate
	Refusal   *Refusal // nil for a candidate
}

// A Performance is the result of a rehearsed search.
type Performance struct {
	Candidates []Candidate // nearest first
	Considered []Considered
	Asked      int           // number of peers asked
	Enough     time.Duration // time when Need was met, or 0 if it never was
	Took       time.Duration // time when the search returned
}

// Play runs the search as Candidates does.
func (r Rehearsal) Play() Performance {
	p := &rehearsed{Rehearsal: r, core: newGathering(r.Need, r.Config.parallel(r.Need), r.Config.Grace)}
	p.core.estimate = r.Estimate
	for _, id := range r.Near {
		p.core.addPeer(id)
	}
	for {
		p.ask()
		if p.core.done(instant(p.now)) {
			break
		}
		p.next()
		if p.enough == 0 && !p.core.enoughAt.IsZero() {
			p.enough = p.now
		}
	}
	candidates, considered := p.core.result()
	return Performance{candidates, considered, p.asked, p.enough, p.now}
}

// instant converts a virtual time for the core, where the zero time.Time means "none".
func instant(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

// rehearsed is a running Rehearsal.
type rehearsed struct {
	Rehearsal
	core    *gathering
	now     time.Duration
	replies []reply // ordered by time
	asked   int
	enough  time.Duration
}

type reply struct {
	at time.Duration
	id p2ppeer.ID
	Reply
}

func (p *rehearsed) ask() {
	for _, id := range p.core.ask() {
		a := p.Ask(id)
		at := p.now + a.After
		i, _ := slices.BinarySearchFunc(p.replies, at, func(r reply, at time.Duration) int { return cmp.Compare(r.at, at) })
		p.replies = slices.Insert(p.replies, i, reply{at, id, a})
		p.asked++
	}
}

// next processes the next event: a hint, the end of the lookup, a reply, or the end of the grace period.
func (p *rehearsed) next() {
	const never = time.Duration(math.MaxInt64)
	hint, answer, grace := never, never, never
	if len(p.Hints) > 0 {
		hint = p.Hints[0].At
	} else if !p.core.ended {
		hint = p.Ended
	}
	if len(p.replies) > 0 {
		answer = p.replies[0].at
	}
	if end, ok := p.core.deadline(); ok {
		grace = end.Sub(instant(0))
	}
	p.now = max(p.now, min(hint, answer, grace))
	switch {
	case grace <= min(hint, answer):
	case answer <= hint:
		p.answered()
	case len(p.Hints) > 0:
		p.core.addPeer(p.Hints[0].Peer)
		p.Hints = p.Hints[1:]
	default:
		p.core.sourcesEnded()
	}
}

// answered passes the next reply to the core.
func (p *rehearsed) answered() {
	r := p.replies[0]
	p.replies = p.replies[1:]
	if r.Refusal != nil {
		p.core.refused(r.id, r.Refusal)
		return
	}
	p.core.accepted(r.Candidate, instant(p.now))
}
