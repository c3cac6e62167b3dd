package sim

import (
	"math"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
)

// askRounds is how many round trips pass from the wish to ask a peer until its offer
// is here and its round-trip time measured: connection, negotiation, offer, two echoes.
const askRounds = 5

// An Outcome is what one search came to.
type Outcome struct {
	Found    int           // suitable peers
	False    int           // of them, that are none: not up, or without a free slot
	Enough   time.Duration // until as many were found as are needed; 0 if they never were
	Took     time.Duration // until the search ended
	Messages int           // requests and answers, of the lookup and of asking for offers
	Lookup   int           // of them, of the lookup
	Asked    int           // peers, for their offer
	Gone     int           // of them, that were not up any more
	RTT      time.Duration // mean, of the needed peers that were nearest among those found
	Best     time.Duration // mean, of the nearest among all that there are
}

// Search has one peer, or a newcomer that knows only one, look for so many suitable
// peers, each with a slot.
func (w *World) Search(need int, newcomer bool) Outcome {
	self := w.somebody()
	known := w.table(self)
	if newcomer {
		known = []int{w.somebody()}
	}
	l := w.look(self, w.rnd.Uint64(), known)
	r := discovery.Rehearsal{
		Need:   discovery.Need{Slots: need, Filter: discovery.Filter{OS: wanted}},
		Config: w.Discovery, Ended: l.now,
		Ask:      func(p p2ppeer.ID) discovery.Reply { return w.reply(self, index(p)) },
		Estimate: w.estimates(self),
	}
	for _, p := range known {
		r.Near = append(r.Near, id(p))
	}
	for _, f := range l.found {
		if f.peer != self {
			r.Hints = append(r.Hints, discovery.Hint{At: f.at, Peer: id(f.peer)})
		}
	}
	return w.outcome(self, need, l, r.Play())
}

// estimates returns what self knows of how far others are; nil is nothing.
func (w *World) estimates(self int) func(p2ppeer.ID) (time.Duration, bool) {
	if w.Placed == 0 {
		return nil
	}
	known := make([]time.Duration, len(w.peers))
	for i := range known {
		if w.rnd.Float64() < w.Placed {
			known[i] = time.Duration(float64(w.peers[i].place.rtt(w.peers[self].place)) * math.Exp(0.15*w.rnd.NormFloat64()))
		}
	}
	return func(p p2ppeer.ID) (time.Duration, bool) { return known[index(p)], known[index(p)] > 0 }
}

// The platform that the program runs on, and another one.
const (
	wanted = "linux"
	other  = "windows"
)

// reply is what peer p says to self.
func (w *World) reply(self, p int) discovery.Reply {
	v := &w.peers[p]
	if !v.up(0) {
		return discovery.Reply{After: silence, Refusal: &discovery.Refusal{Reason: discovery.Unreachable}}
	}
	o := discovery.Offer{SlotsTotal: 1, OS: other}
	if v.suitable {
		o.OS = wanted
	}
	if v.idle {
		o.SlotsFree = 1
	}
	rtt := w.rtt(self, p)
	return discovery.Reply{After: askRounds * rtt, Candidate: discovery.Candidate{AddrInfo: p2ppeer.AddrInfo{ID: id(p)}, Offer: o, RTT: rtt}}
}

// outcome adds a search up.
func (w *World) outcome(self, need int, l *lookup, p discovery.Performance) Outcome {
	o := Outcome{Found: len(p.Candidates), Enough: p.Enough, Took: p.Took, Asked: p.Asked}
	o.Lookup = 2*l.queries - l.silent
	for _, c := range p.Considered {
		if c.Reason == discovery.Unreachable || c.Reason == discovery.Silent && !w.peers[index(c.Peer)].up(0) {
			o.Gone++
		}
	}
	o.Messages = o.Lookup + o.Gone + (p.Asked-o.Gone)*2*askRounds
	var found []time.Duration
	for _, c := range p.Candidates {
		v := &w.peers[index(c.AddrInfo.ID)]
		if !v.up(0) || !v.suitable || !v.idle {
			o.False++
		}
		found = append(found, v.place.rtt(w.peers[self].place))
	}
	var all []time.Duration
	for i := range w.peers {
		if v := &w.peers[i]; i != self && v.up(0) && v.suitable && v.idle {
			all = append(all, v.place.rtt(w.peers[self].place))
		}
	}
	o.RTT, o.Best = mean(found, need), mean(all, need)
	return o
}

// mean is that of the n least.
func mean(ds []time.Duration, n int) time.Duration {
	slices.Sort(ds)
	ds = ds[:min(n, len(ds))]
	sum := time.Duration(0)
	for _, d := range ds {
		sum += d
	}
	return sum / time.Duration(max(1, len(ds)))
}
