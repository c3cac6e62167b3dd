package viewgroup

import (
	"crypto/rand"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

var states = flag.Int("states", defaultStates, "states of each scenario after which exploring stops")

func fails(rank int) view.Change {
	return view.Change{Process: view.Process{Rank: rank}, To: view.Failed}
}
func finishes(rank int) view.Change {
	return view.Change{Process: view.Process{Rank: rank}, To: view.Finished}
}

// joins returns the change by which the first newcomer's process joins its rank.
func joins() view.Change { return view.Change{Process: view.Process{Replica: 1}} }

// elected makes member 1 the leader, after member 2 has also missed the leader. Both are candidates at first;
// then member 2 is too early for the pre-vote of member 1.
var elected = []event{
	{kind: waits, from: 2}, {kind: waits, from: 1}, {kind: quietens},
	{kind: waits, from: 2}, {kind: quietens}, {kind: waits, from: 1}, {kind: quietens},
}

// after concatenates rows of events.
func after(rows ...[]event) []event { return slices.Concat(rows...) }

// withoutSubmitter crashes the submitter's peer, which then loses its vote; member 1 leads, and the remaining peers
// are the members.
var withoutSubmitter = after([]event{{kind: crashes, from: 0}}, elected, passes(9))

// missed makes member 2 the leader, which commits a change while the submitter's peer is cut off. That peer
// then asks for the log.
var missed = []event{
	{kind: cut, from: 0}, {kind: waits, from: 1}, {kind: waits, from: 2}, {kind: quietens},
	{kind: waits, from: 1}, {kind: quietens}, {kind: waits, from: 2}, {kind: quietens}, {kind: proposes}, {kind: quietens},
	{kind: waits, from: 0}, {kind: heals}, {kind: waits, from: 0},
}

var scenarios = []scenario{
	{"two proposals", 3, []proposedChange{{0, fails(0), submitterPeer}, {1, finishes(0), submitterPeer}}, allowed{waits: 1}, nil, nil},
	{"a proposal, elections", 3, []proposedChange{{0, fails(0), submitterPeer}}, allowed{waits: 2}, nil, nil},
	{"two proposals, a crash", 3, []proposedChange{{0, fails(0), submitterPeer}, {1, finishes(1), submitterPeer}}, allowed{waits: 2, crashes: 1}, nil, nil},
	{"two proposals, a partition", 3, []proposedChange{{0, fails(0), submitterPeer}, {1, fails(1), submitterPeer}}, allowed{waits: 2, cuts: 1}, nil, nil},
	{"a proposal, a partition that heals", 3, []proposedChange{{0, fails(0), submitterPeer}}, allowed{waits: 2, cuts: 1, heals: 1}, nil, nil},
	// The old leader has an entry that no other member has, in place of another entry.
	{"an old leader returns", 3, []proposedChange{{0, fails(0), submitterPeer}, {1, finishes(0), submitterPeer}, {2, fails(1), submitterPeer}}, allowed{waits: 5, cuts: 1, heals: 1},
		after([]event{{kind: proposes, from: 0}, {kind: cut, from: 0}}, elected), nil},
	{"the leader crashes with a pending proposal", 3, []proposedChange{{0, fails(0), submitterPeer}, {2, fails(1), submitterPeer}}, allowed{waits: 5, crashes: 1},
		after([]event{{kind: proposes, from: 0}, {kind: arrives, from: 0, to: 1}, {kind: crashes, from: 0}}, elected[:2]), nil},
	{"a newcomer", 3, []proposedChange{{0, joins(), submitterPeer}}, allowed{waits: 2, crashes: 1}, nil, bySubmitter},
	{"a newcomer, a partition that heals", 3, []proposedChange{{0, joins(), submitterPeer}, {1, fails(1), submitterPeer}}, allowed{waits: 5, cuts: 1, heals: 1},
		after([]event{{kind: introduces, from: 3}, {kind: cut, from: 0}}, elected), bySubmitter},
	{"a lost member is replaced, and another one is lost", 3, []proposedChange{{0, joins(), submitterPeer}, {1, finishes(0), submitterPeer}}, allowed{waits: 3, crashes: 2},
		replaced, bySubmitter},
	{"a newcomer is introduced while a member is lost", 3, []proposedChange{{0, fails(1), submitterPeer}, {0, joins(), submitterPeer}}, allowed{waits: 2, crashes: 1},
		[]event{{kind: crashes, from: 2}, {kind: tells, from: 0, to: 2}}, bySubmitter},
	{"the submitter's process is killed and resumed", 3, []proposedChange{{3, fails(0), 3}, {2, finishes(1), 2}}, allowed{waits: 5, crashes: 1, resumes: 1},
		[]event{{kind: crashes, from: 0}, {kind: resumes, from: 3}}, nil},
	{"the submitter's process is resumed after an election", 3, []proposedChange{{3, fails(0), 3}, {1, finishes(0), 1}}, allowed{waits: 7, crashes: 1, resumes: 1},
		after([]event{{kind: crashes, from: 0}}, elected, []event{{kind: resumes, from: 3}}), nil},
	{"the submitter's process is resumed, and a member is lost", 4, []proposedChange{{4, fails(1), 4}}, allowed{waits: 16, crashes: 2, resumes: 1},
		after(withoutSubmitter, []event{{kind: resumes, from: 4}}), nil},
	{"a change is pending while the submitter's process is resumed", 3, []proposedChange{{0, fails(0), submitterPeer}, {3, finishes(1), 3}}, allowed{waits: 7, crashes: 1, resumes: 1},
		after([]event{{kind: proposes}, {kind: arrives, from: 0, to: 1}, {kind: crashes, from: 0}}, elected, []event{{kind: resumes, from: 3}}), nil},
	{"the submitter's peer is silent for long, and another one is lost", 4, []proposedChange{{1, finishes(0), submitterPeer}}, allowed{waits: 15, crashes: 2},
		after([]event{{kind: crashes, from: 0}}, elected, passes(9)), nil},
	{"the submitter's peer returns after its replacement", 4, []proposedChange{{0, joins(), submitterPeer}}, allowed{waits: 14, cuts: 1, heals: 1},
		after([]event{{kind: cut, from: 0}}, elected, passes(9), []event{{kind: heals}, {kind: introduces, from: 4}, {kind: proposes}}), bySubmitter},
	{"the submitter's new process introduces a newcomer", 3, []proposedChange{{4, joins(), 4}}, allowed{waits: 27, resumes: 1, crashes: 2},
		after(withoutSubmitter, []event{{kind: resumes, from: 4}}, rounds(4, 4, 1, 2)), []int{4}},
	{"the submitter's new process introduces a newcomer again", 3, []proposedChange{{0, joins(), submitterPeer}, {4, joins(), 4}}, allowed{waits: 27, resumes: 1, crashes: 2},
		after([]event{{kind: introduces, from: 3}, {kind: proposes}, {kind: quietens}}, withoutSubmitter, []event{{kind: resumes, from: 4}}, rounds(4, 4, 1, 2)), []int{0, 4}},
	{"a voter leaves, and a member is lost", 4, []proposedChange{{2, finishes(1), 2}}, allowed{waits: 1, crashes: 1}, []event{{kind: leaves, from: 1}}, nil},
	{"two voters leave, and the submitter's peer is lost", 4, []proposedChange{{2, finishes(1), 2}}, allowed{waits: 1}, []event{{kind: leaves, from: 1}, {kind: leaves, from: 2}, {kind: crashes, from: 0}}, nil},
	{"a voter leaves that no learner can replace", 3, nil, allowed{waits: 2}, []event{{kind: leaves, from: 1}}, nil},
	{"a voter leaves that no learner can replace, and the submitter's peer is lost", 3, nil, allowed{waits: 2}, []event{{kind: leaves, from: 1}, {kind: crashes, from: 0}}, nil},
	{"a peer says that it leads", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"leads in a new term", "leads in this term"}}, nil, nil},
	{"a peer says that it leads, while an election is due", 4, []proposedChange{{2, fails(1), submitterPeer}}, allowed{waits: 2, crashes: 1, lies: []string{"leads with made-up votes"}}, nil, nil},
	{"a peer says that a later term has begun", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"knows a later term"}}, nil, nil},
	{"a peer wants an election", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"hands over without leading", "is a candidate beside the leader"}}, nil, nil},
	{"a peer forges a permission", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"forges the permission of the leader"}}, nil, nil},
	{"a peer shows the permission of another", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"shows the submitter's decision as its own"}}, nil, nil},
	{"a peer orders an election", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"forges an order of the submitter", "is a candidate by its own order", "orders an election"}}, nil, nil},
	{"a peer omits the term", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"leads in no term", "is a candidate in no term"}}, nil, nil},
	{"a peer collects pre-votes", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{lies: []string{"asks for a pre-vote"}}, nil, nil},
	{"a peer signs two logs", 3, []proposedChange{{0, fails(1), submitterPeer}}, allowed{waits: 1, lies: []string{"signs two logs"}}, nil, nil},
	{"a peer changes an entry that it relays", 3, []proposedChange{{2, fails(1), submitterPeer}}, allowed{lies: []string{"changes an entry that it relays"}}, missed, nil},
	{"a leader makes up that an entry is committed", 4, []proposedChange{{2, fails(1), submitterPeer}}, allowed{waits: 2, lies: []string{"commits an entry that no other member has"}}, withoutSubmitter, nil},
	{"a leader sends entries that it has not signed", 4, []proposedChange{{2, fails(1), submitterPeer}}, allowed{lies: []string{"sends entries that it has not signed"}}, withoutSubmitter, nil},
	{"a leader changes the voters twice at once", 4, []proposedChange{{2, fails(1), submitterPeer}}, allowed{lies: []string{"changes the voters twice at once"}}, withoutSubmitter, nil},
	{"a leader has two logs", 4, []proposedChange{{1, fails(1), submitterPeer}, {3, fails(2), submitterPeer}}, allowed{lies: []string{"commits an entry that no other member has"}}, withoutSubmitter, nil},
}

// bySubmitter means that the submitter's peer introduces a newcomer.
var bySubmitter = []int{0}

// passes lets the time of several elections pass at member 1, which leads, without faults.
func passes(times int) (row []event) {
	for range times {
		row = append(row, event{kind: waits, from: 1}, event{kind: quietens})
	}
	return row
}

// rounds lets the time of elections pass at each of these members in turn.
func rounds(times int, members ...int) (row []event) {
	for range times {
		for _, i := range members {
			row = append(row, event{kind: waits, from: i}, event{kind: quietens})
		}
	}
	return row
}

// replaced replaces member 2 by a newcomer.
var replaced = []event{
	{kind: crashes, from: 2}, {kind: tells, from: 0, to: 2}, {kind: introduces, from: 3}, {kind: quietens},
	{kind: waits, from: 0}, {kind: quietens}, {kind: quietens},
}

// noChance is a deterministic source of random bytes. All timeouts of the library are then the shortest,
// and the exploration chooses which member comes first.
type noChance struct{}

func (noChance) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestEveryInterleaving checks V1 and V2 in every state that a small group can reach, breadth first. It
// explores every order of proposals, arrivals, elections, a crash and a cut. It reaches a state by
// repeating all events that lead to it, since the library's part of the state cannot be copied. The result
// therefore holds only for event sequences of bounded length.
//
// The exploration of package replication relies only on two properties of views. They form one sequence, in
// which each view follows from the previous one by a view.Change, and a peer receives them in order but may
// lag behind. There each process may learn any view of such a sequence at any time.
func TestEveryInterleaving(t *testing.T) {
	old := rand.Reader
	rand.Reader = noChance{}
	t.Cleanup(func() { rand.Reader = old })
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			explore(t, sc, skip.Fewer(*states, 40))
		})
	}
}

// explore follows every order of events, one depth after the other, until there is no new state or enough
// states were found.
func explore(t *testing.T, sc scenario, most int) {
	met := map[uint64]bool{newWhole(sc).hash(): true}
	level, depth, events, ends := [][]event{nil}, 0, 0, 0
	for ; len(level) > 0 && len(met) < most; depth++ {
		var next [][]event
		for _, path := range level {
			g := replay(sc, path)
			evs := g.events()
			for i, e := range evs {
				if i > 0 {
					g = replay(sc, path)
				}
				g.apply(e)
				events++
				way := append(path[:len(path):len(path)], e)
				if g.broken != nil {
					t.Fatalf("%v\nafter %s", g.broken, story(way))
				}
				if h := g.hash(); !met[h] {
					met[h] = true
					next = append(next, way)
				}
			}
			if len(evs) == 0 || len(met)%settled == 0 {
				ends++
				g := replay(sc, path)
				if g.settle(); g.broken != nil {
					t.Fatalf("%v\nin the end after %s", g.broken, story(path))
				}
			}
		}
		level = next
	}
	t.Logf("%s: %d states, %d events, %d ends, every order of %d events, complete %v", sc.name, len(met), events, ends, depth, len(level) == 0)
}

// settled is a sampling rate: one state in settled is followed to its end.
const settled = 20

func replay(sc scenario, path []event) *whole {
	g := newWhole(sc)
	for _, e := range path {
		g.apply(e)
	}
	return g
}

func story(path []event) string {
	var told []string
	for _, e := range path {
		told = append(told, e.String())
	}
	return strings.Join(told, ", ")
}
