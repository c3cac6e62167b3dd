package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

const need = 64

// searches returns the searches in a few worlds of the given size, by a peer and by a newcomer.
func searches(live, worlds int) (peers, newcomers []Outcome) {
	c := DefaultConfig()
	c.Live = live
	for c.Seed = range uint64(worlds) {
		w := New(c)
		peers, newcomers = append(peers, w.Search(need, false)), append(newcomers, w.Search(need, true))
	}
	return peers, newcomers
}

func total(outcomes []Outcome, of func(Outcome) int) (sum int) {
	for _, o := range outcomes {
		sum += of(o)
	}
	return sum
}

// TestSearchesGrowSlowly checks that ten times as many peers cost at most two more steps of the lookup, and a
// few more requests because peers are farther away.
func TestSearchesGrowSlowly(t *testing.T) {
	skip.Long(t)
	small, newSmall := searches(1000, 4)
	large, newLarge := searches(10_000, 4)
	growsSlowly(t, "peer", small, large)
	growsSlowly(t, "newcomer", newSmall, newLarge)
	if total(newSmall, func(o Outcome) int { return o.Gone }) == 0 {
		t.Error("no search found the record of a peer that has left")
	}
}

func growsSlowly(t *testing.T, who string, small, large []Outcome) {
	for _, o := range slices.Concat(small, large) {
		if o.Found < need || o.False > 0 || o.Enough == 0 {
			t.Errorf("%s: %d peers were found, and %d of them are not candidates; want %d", who, o.Found, o.False, need)
		}
		if o.RTT < o.Best {
			t.Errorf("%s: the found peers are nearer than the nearest peers: %+v", who, o)
		}
	}
	messages := func(o Outcome) int { return o.Messages }
	if few, many := total(small, messages), total(large, messages); many > few*3/2 {
		t.Errorf("%s: %d messages among 1,000 peers, %d among 10,000", who, few, many)
	}
	took := func(o Outcome) int { return int(o.Took / time.Millisecond) }
	if few, many := total(small, took), total(large, took); many > 2*few {
		t.Errorf("%s: %d ms among 1,000 peers, %d among 10,000", who, few, many)
	}
}

func TestSameSeedSameSearch(t *testing.T) {
	first, newcomer := searches(300, 2)
	again, newAgain := searches(300, 2)
	if !slices.Equal(first, again) || !slices.Equal(newcomer, newAgain) {
		t.Errorf("got %+v and %+v, then %+v and %+v", first, newcomer, again, newAgain)
	}
}

// TestSessionDistributions checks that the drawn sessions have the mean of their distribution, and that the
// share of peers that are up matches both distributions.
func TestSessionDistributions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const n = 200_000
	up, away := 0.0, 0.0
	for range n {
		up += seti.up(rnd) / n
		away += seti.away(rnd) / n
	}
	if want := seti.UpScale * math.Gamma(1+1/seti.UpShape); math.Abs(up/want-1) > 0.05 {
		t.Errorf("the mean uptime is %.2f h, want %.2f", up, want)
	}
	if want := math.Exp(seti.AwayMean + seti.AwaySigma*seti.AwaySigma/2); math.Abs(away/want-1) > 0.2 {
		t.Errorf("the mean absence is %.2f h, want %.2f", away, want)
	}
	live := 0
	const peers = 5000
	for range peers {
		v := volunteer{sessions: seti.sessions(rnd)}
		if v.up(0) {
			live++
		}
	}
	if got, want := float64(live)/peers, up/(up+away); math.Abs(got-want) > 0.12 {
		t.Errorf("%.2f of the peers are up, want about %.2f", got, want)
	}
}

// TestLookupFindsTheHolders compares the peers that a lookup has asked with the nearest ones.
func TestLookupFindsTheHolders(t *testing.T) {
	c := DefaultConfig()
	c.Live, c.Found, c.Habits = 2000, math.MaxInt, Habits{UpShape: 1, UpScale: 1e9, AwayMean: -1e9}
	w := New(c) // no peer ever leaves
	self := w.randomPeer()
	l := w.look(self, w.rnd.Uint64(), w.table(self))
	for h := range l.holders {
		if l.state[h] != answered && h != self {
			t.Errorf("holder %d was not asked", h)
		}
	}
	if len(l.found) < 1900 {
		t.Errorf("%d records of 2000 peers", len(l.found))
	}
	if l.silent > 0 || l.queries > 100 {
		t.Errorf("%d queries, %d of them silent", l.queries, l.silent)
	}
}

// TestRecordsOutliveTheirPeers checks that a holder has the records of peers that left after the holder came up,
// but not of peers that left before that or too long ago.
func TestRecordsOutliveTheirPeers(t *testing.T) {
	w := &World{peers: []volunteer{
		{sessions: []session{{-60, 1}}},           // the holder
		{sessions: []session{{-1, 5}}},            // up
		{sessions: []session{{-30, -20}}},         // left
		{sessions: []session{{-90, -49}}},         // left more than 48 h ago
		{sessions: []session{{1, 2}, {-70, -47}}}, // will come up again; was here
		{sessions: []session{{0.5, 2}}},           // will come up
	}}
	if got, want := w.records(0), []int{1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.peers[0].sessions[0].from = -10
	if got, want := w.records(0), []int{1}; !slices.Equal(got, want) {
		t.Errorf("a holder that came later: got %v, want %v", got, want)
	}
}
