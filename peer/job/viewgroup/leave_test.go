package viewgroup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// leave makes a peer leave, which ends once it may go.
func (w *world) leave(i int) {
	w.Helper()
	w.carry(i, w.members[i].Leave())
}

// latest returns the member that knows the most committed entries.
func (w *world) latest() (latest *Member) {
	for _, m := range w.members {
		if m != nil && (latest == nil || m.proofs.commit > latest.proofs.commit) {
			latest = m
		}
	}
	return latest
}

// goOnLeaving lets a tick pass. It removes each peer that leaves and may go, and returns how many did. A majority of
// the voters must remain.
func (w *world) goOnLeaving() (gone int) {
	w.Helper()
	w.tick()
	voters, remain := w.latest().conf.GetVoters(), 0
	for i, m := range w.members {
		if m != nil && m.Left() {
			gone++
			w.crash(i)
		}
	}
	for _, id := range voters {
		if w.members[id-1] != nil {
			remain++
		}
	}
	if 2*remain <= len(voters) {
		w.Fatalf("tick %d: %d of the voters %v remain: %s", w.now, remain, voters, w.state())
	}
	return gone
}

// leavers are peers that leave at times, beside a submitter that is killed at a time.
type leavers struct {
	peers   int
	leave   map[int]int // by peer: time in ticks
	remains int         // peer that remains
	before  int         // the job continues if the submitter is killed before this time; 0: whenever it is killed
	loss    float64     // share of messages that are lost
	delay   int         // maximum delay of messages in ticks; 0: that of newWorld
}

// run lets the peers leave. The peer that remains must then be able to decide.
func (l leavers) run(t *testing.T, seed uint64, killed int) {
	w := newWorld(t, seed, l.peers)
	w.ticks(5)
	if l.delay > 0 {
		w.loss, w.delay = l.loss, l.delay
	}
	left := 0
	for now := 0; left < len(l.leave) || now <= killed; now++ {
		if now == killed {
			w.crash(submitterPeer)
		}
		for i, at := range l.leave {
			if now == at {
				w.leave(i)
			}
		}
		left += w.goOnLeaving()
	}
	last := view.Process{Rank: l.remains - 1}
	w.propose(l.remains, last.Rank, view.Finished)
	w.until("the peer that remains decides", func() bool { return w.members[l.remains].View().State(last) == view.Finished })
}

// TestLeaversKeepTheMajority lets voters leave while the submitter is killed, before or after that. The job continues,
// unless the submitter is killed when only one other peer is left in the group.
func TestLeaversKeepTheMajority(t *testing.T) {
	for name, l := range map[string]leavers{
		"one of three":                 {peers: 3, leave: map[int]int{1: 1}, remains: 2, before: 10},
		"one of three, and a learner":  {peers: 4, leave: map[int]int{1: 1}, remains: 2},
		"two of three, and a learner":  {peers: 4, leave: map[int]int{1: 1, 2: 1}, remains: 3, before: 10},
		"seconds apart":                {peers: 4, leave: map[int]int{1: 1, 2: 31}, remains: 3, before: 30},
		"two of three, and learners":   {peers: 5, leave: map[int]int{1: 1, 2: 1}, remains: 3},
		"two of five":                  {peers: 5, leave: map[int]int{1: 1, 2: 1}, remains: 3},
		"three of five":                {peers: 5, leave: map[int]int{1: 1, 2: 1, 3: 1}, remains: 4, before: 10},
		"three of five, seconds apart": {peers: 5, leave: map[int]int{1: 1, 2: 21, 3: 41}, remains: 4, before: 40},
		"three of five, and a learner": {peers: 6, leave: map[int]int{1: 1, 2: 1, 3: 1}, remains: 4},
		"all of five, and learners":    {peers: 8, leave: map[int]int{1: 1, 2: 5, 3: 10, 4: 15}, remains: 6},
	} {
		for _, killed := range []int{0, 1, 3, 5, 9, 11, 13, 25, 35, 60} {
			if l.before > 0 && killed >= l.before {
				continue
			}
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s, killed at %d, %d", name, killed, seed), func(t *testing.T) { l.run(t, seed, killed) })
			}
		}
	}
}

// TestLeaversOnLossyLinks lets random peers leave at random times around that at which the submitter is killed. Two of
// 8,000 seeds, which come first, showed that the times for which peers wait were too short.
func TestLeaversOnLossyLinks(t *testing.T) {
	seeds := []uint64{52536, 104668}
	for range skip.Fewer(300, 30) {
		seeds = append(seeds, rand.Uint64())
	}
	for _, seed := range seeds {
		l, killed := randomLeavers(rand.New(rand.NewPCG(seed, 9)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { l.run(t, seed, killed) })
	}
}

// randomLeavers returns peers of which two or more remain, and the time at which the submitter is killed.
func randomLeavers(random *rand.Rand) (l leavers, killed int) {
	l = leavers{peers: 5 + random.IntN(4), leave: make(map[int]int)}
	leaving := l.peers - 3 - random.IntN(l.peers-3)
	l.loss, l.delay = 0.1*random.Float64(), 1+random.IntN(3)
	peers := random.Perm(l.peers - 1)
	for _, p := range peers[:leaving] {
		l.leave[p+1] = random.IntN(80)
	}
	l.remains = peers[leaving] + 1
	return l, random.IntN(120)
}

// TestLeaverThatLiesHarmsItselfOnly checks that a peer that asks to be replaced, and then falls silent or keeps its process in the
// view, harms itself only.
func TestLeaverThatLiesHarmsItselfOnly(t *testing.T) {
	for name, silent := range map[string]bool{"falls silent": true, "stays": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, 4)
			w.ticks(5)
			said := w.members[0].message(0)
			said.From, said.Leaves = 1, true
			out, err := w.members[0].Step(1, said)
			if err != nil {
				t.Fatal(err)
			}
			w.carry(0, out)
			if silent {
				w.crash(1)
				w.propose(0, 0, view.Failed) // as its jurors do
			}
			w.until("another peer votes in its place", func() bool { return !w.members[0].Votes(1) && w.members[0].Votes(3) })
			w.ticks(2 * cutOffTicks)
			if m := w.members[2]; m.Votes(1) || len(m.conf.GetVoters()) != 3 || m.View().Live(view.Process{}) == silent {
				t.Errorf("the members are %v, the view is %v", m.conf, m.View())
			}
		})
	}
}

// TestPeerThatIsNotNeededGoesSoon checks that a peer without a vote goes soon, and one that no other peer needs at once.
func TestPeerThatIsNotNeededGoesSoon(t *testing.T) {
	w := newWorld(t, 4, 4)
	w.ticks(5)
	w.leave(3)
	if n := w.until("the peer without a vote has left", func() bool { return w.members[3].Left() }); n > graceTicks+1 {
		t.Errorf("a peer without a vote stays for %d ticks", n)
	}
	for rank := range 3 {
		w.propose(0, rank, view.Finished)
	}
	w.until("the view has arrived", func() bool { return w.members[1].View().Epoch == 4 })
	w.leave(1)
	if !w.members[1].Left() || w.members[2].Left() {
		t.Error("a peer stays although no process runs, or goes without being asked to")
	}
}
