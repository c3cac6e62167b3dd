package reservation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// candidates returns peers with the given numbers of advertised slots, named a, b, c, ...
func candidates(slots ...int) []Candidate {
	cs := make([]Candidate, len(slots))
	for i, s := range slots {
		cs[i] = Candidate{Peer: p2ppeer.ID(rune('a' + i)), Slots: s}
	}
	return cs
}

// A reply is the answer of a peer to a request: slots, or a refusal with the reason.
type reply struct {
	peer  string
	slots int
	why   Reason
}

func TestAttemptAsksUntilEnough(t *testing.T) {
	tests := []struct {
		name       string
		need       Need
		candidates []Candidate
		script     []reply
		want       string // requests, with a semicolon after those of each reply
		enough     bool
	}{
		{
			"spread asks each of many peers for one",
			Need{N: 2, R: 1, Strategy: Spread}, candidates(4, 4, 4, 4, 4, 4),
			[]reply{{"a", 1, 0}, {"b", 1, 0}},
			"a1 b1 c1 d1 e1;;", true,
		},
		{
			"concentrate asks the nearest for all usable slots",
			Need{N: 2, R: 2, Strategy: Concentrate}, candidates(4, 4, 4, 4, 4, 4),
			[]reply{{"a", 2, 0}, {"b", 2, 0}},
			"a2 b2 c2 d2 e2;;", true,
		},
		{
			"a refusal is compensated by the next peer",
			Need{N: 1, R: 1, Strategy: Spread}, candidates(1, 1, 1),
			[]reply{{"a", 0, Busy}, {"b", 0, Denied}, {"c", 1, 0}},
			"a1;b1;c1;", true,
		},
		{
			"peers that granted all are asked for more when no new peer is left",
			Need{N: 4, R: 1, Strategy: Spread}, candidates(4, 1, 1, 1, 1, 1, 1, 1, 1, 1),
			[]reply{{"a", 1, 0}, {"b", 0, Busy}, {"c", 0, Busy}, {"d", 0, Busy}, {"e", 0, Busy}, {"f", 0, Busy},
				{"g", 0, Busy}, {"h", 0, Busy}, {"i", 0, Busy}, {"j", 0, Busy}, {"a", 2, 0}, {"a", 4, 0}},
			"a1 b1 c1 d1 e1 f1 g1 h1 i1 j1;;a2;;;;;;;;;a4;", true,
		},
		{
			"a peer that refuses more keeps its grant",
			Need{N: 2, R: 1, Strategy: Spread}, candidates(2, 1, 1, 1, 1, 1),
			[]reply{{"a", 1, 0}, {"b", 0, Busy}, {"c", 0, Busy}, {"d", 1, 0}, {"a", 0, Silent}},
			"a1 b1 c1 d1 e1;;f1;a2;;", true,
		},
		{
			"a peer that granted less is not asked again",
			Need{N: 4, R: 1, Strategy: Concentrate}, candidates(4),
			[]reply{{"a", 3, 0}},
			"a4;", false,
		},
		{
			"a peer without free slots is asked last",
			Need{N: 1, R: 1, Strategy: Spread}, candidates(0, 1),
			[]reply{{"b", 0, Silent}, {"a", 1, 0}},
			"b1;a1;", true,
		},
		{
			"a job that does not wait asks for the advertised free slots, then for more",
			Need{N: 4, R: 1, Strategy: Spread}, []Candidate{{Peer: "a", Slots: 0, Total: 4}},
			[]reply{{"a", 1, 0}, {"a", 4, 0}},
			"a1;a4;", true,
		},
		{
			"a waiting job also asks for slots that have become free",
			Need{N: 4, R: 1, Strategy: Spread, Waits: true}, []Candidate{{Peer: "a", Slots: 1, Total: 4}},
			[]reply{{"a", 1, 0}, {"a", 4, 0}},
			"a1;a4;", true,
		},
		{
			"a peer named twice counts once",
			Need{N: 1, R: 2, Strategy: Spread}, append(candidates(1), candidates(1)...),
			[]reply{{"a", 1, 0}},
			"a1;", false,
		},
		{
			"slots beyond the request do not count",
			Need{N: 2, R: 2, Strategy: Spread}, candidates(1, 1),
			[]reply{{"a", 99, 0}, {"b", 99, 0}},
			"a1 b1;;", false,
		},
		{
			"a grant of no slots is a refusal",
			Need{N: 1, R: 1, Strategy: Spread}, candidates(1, 1),
			[]reply{{"a", 0, 0}, {"b", -1, 0}},
			"a1;b1;", false,
		},
		{
			"the data strategies ask the best cache first",
			Need{N: 1, R: 1, Strategy: DataSpread}, []Candidate{{Peer: "a", Slots: 1, Cached: 5}, {Peer: "b", Slots: 1, Cached: 9}},
			[]reply{{"b", 0, Busy}, {"a", 1, 0}},
			"b1;a1;", true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAttempt(tt.candidates, tt.need)
			got := play(a, tt.script)
			if got != tt.want || a.enough() != tt.enough {
				t.Errorf("the attempt asked %q, has enough slots: %v; want %q, %v", got, a.enough(), tt.want, tt.enough)
			}
			if _, err := a.place(); (err == nil) != tt.enough {
				t.Errorf("the attempt has enough slots: %v, but placing returned %v", tt.enough, err)
			}
		})
	}
}

// play runs the script and records the requests of the attempt.
func play(a *attempt, script []reply) string {
	var b strings.Builder
	write := func() {
		for i, q := range a.next() {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%s%d", string(a.peers[q.index].Peer), q.slots)
		}
	}
	write()
	for _, r := range script {
		b.WriteByte(';')
		for i, p := range a.peers {
			if string(p.Peer) != r.peer {
				continue
			}
			if r.why != 0 {
				a.refused(i, r.why)
			} else {
				a.granted(i, Grant{Slots: r.slots})
			}
		}
		write()
	}
	return b.String()
}

func TestShortageReportsReasons(t *testing.T) {
	a := newAttempt(candidates(2, 2, 2, 2), Need{N: 2, R: 3, Strategy: Spread})
	play(a, []reply{{"a", 2, 0}, {"b", 0, Busy}, {"c", 0, Busy}, {"d", 0, Silent}})
	want := "found 2 of the 6 slots needed (n=2 r=3) on 1 of at least 3 peers; 4 peers considered, 2 busy, 1 silent"
	if got := a.shortage().Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	one := newAttempt(candidates(2), Need{N: 2, R: 1, Strategy: Spread})
	play(one, []reply{{"a", 0, Busy}})
	if got, want := one.shortage().Error(), "found 0 of the 2 slots needed (n=2 r=1) on 0 of at least 1 peer; 1 peer considered, 1 busy"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestReasonOf(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want Reason
	}{
		{"not wrapped", Busy, Busy},
		{"wrapped with its cause", fmt.Errorf("hold: %w: %w", Unreachable, errors.New("refused")), Unreachable},
		{"no reason", errors.New("stream reset"), Silent},
	}
	for _, tt := range tests {
		if got := reasonOf(tt.err); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRememberKeepsEarlierCandidates(t *testing.T) {
	before := []Candidate{{Peer: "a", Slots: 2, Total: 2}, {Peer: "b", Slots: 1, Total: 4}}
	got := Remember([]Candidate{{Peer: "c", Slots: 3}, {Peer: "a", Slots: 1}}, before)
	want := []Candidate{{Peer: "c", Slots: 3}, {Peer: "a", Slots: 1}, {Peer: "b", Total: 4}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := len(Remember(nil, make([]Candidate, 5000))); n > maxCandidates {
		t.Errorf("%d candidates are remembered", n)
	}
}

// TestReplicasAreSeparatedByAddressIfAnOwnerRefuses: if the only other owner refuses, the replicas are
// still at two addresses.
func TestReplicasAreSeparatedByAddressIfAnOwnerRefuses(t *testing.T) {
	cs := candidates(1, 1, 1, 1, 1, 1, 1, 1)
	for i := range cs {
		cs[i].Domain = Domain{Owner: "alice", Verified: true, Addresses: []string{"1"}}
	}
	cs[6].Domain.Addresses = []string{"2"}
	cs[7].Domain = Domain{Owner: "bob", Verified: true, Addresses: []string{"3"}}
	a := newAttempt(cs, Need{N: 1, R: 2})
	for asks := a.next(); len(asks) > 0; asks = a.next() {
		for _, q := range asks {
			if a.peers[q.index].Domain.Owner == "bob" {
				a.refused(q.index, Denied)
			} else {
				a.granted(q.index, Grant{Slots: q.slots})
			}
		}
	}
	placed, err := a.place()
	if err != nil {
		t.Fatal(err)
	}
	if len(placed) != 2 || placed[0].Peer != "a" || placed[1].Peer != "g" {
		t.Errorf("the processes were placed at %v, want a and g, whose addresses differ", placed)
	}
}
