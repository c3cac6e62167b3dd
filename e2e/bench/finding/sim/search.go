package sim

import (
	"math"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
)

// askRounds is the number of round trips from the decision to ask a peer until its offer and round-trip
// time are known: connection, negotiation, offer and two echoes.
const askRounds = 5

// An Outcome is the result of one search.
type Outcome struct {
	Found    int           // suitable peers
	False    int           // found peers that are not candidates: not up, or without a free slot
	Enough   time.Duration // time until enough were found, or 0 if that never happened
	Took     time.Duration // time until the search ended
	Messages int           // requests and answers of the lookup and of the requests for offers
	Lookup   int           // messages of the lookup
	Asked    int           // peers asked for their offer
	Gone     int           // asked peers that were no longer up
	RTT      time.Duration // mean, of the needed number of nearest peers among those found
	Best     time.Duration // mean, of the needed number of nearest peers among all
}

// Search simulates a peer's search for need suitable peers with one slot each. A newcomer knows only one
// peer.
func (w *World) Search(need int, newcomer bool) Outcome {
	self := w.randomPeer()
	known := w.table(self)
	if newcomer {
		known = []int{w.randomPeer()}
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

// estimates returns the searcher's distance estimates, or nil if there are none.
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

// wanted is the platform that the program runs on; other is a different one.
const (
	wanted = "linux"
	other  = "windows"
)

// reply returns peer p's reply to self.
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

// outcome summarizes a search.
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

// mean returns the mean of the n smallest values.
func mean(ds []time.Duration, n int) time.Duration {
	slices.Sort(ds)
	ds = ds[:min(n, len(ds))]
	sum := time.Duration(0)
	for _, d := range ds {
		sum += d
	}
	return sum / time.Duration(max(1, len(ds)))
}
