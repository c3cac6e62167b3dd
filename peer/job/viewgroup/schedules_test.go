package viewgroup

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

var (
	schedules = flag.Int("schedules", 15, "random schedules")
	seed      = flag.Uint64("seed", 0, "of the first schedule; 0: another one each time")
)

// TestV1RandomSchedules drops and delays messages, separates the peers and single links for a while, and crashes peers
// as long as a majority of the members remains. It lets peers leave. It stops processes of the submitter, and starts others beside them.
// Then all proposed changes are committed, unless a former process of the submitter lives.
func TestV1RandomSchedules(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano() % 1e9)
	}
	t.Logf("-seed %d", first)
	for s := range uint64(*schedules) {
		runSchedule(t, first+s)
	}
}

func runSchedule(t *testing.T, seed uint64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("fails with -seed %d -schedules 1", seed)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 2))
	peers := 3 + random.IntN(6)
	w := newWorld(t, seed, peers)
	w.loss, w.delay = 0.1*random.Float64(), 1+random.IntN(6)
	quiet := 0 // no crash before this time: a separated peer may be about to be removed
	for range 400 {
		w.tick()
		w.removeLeft()
		i := random.IntN(len(w.members))
		if w.submitterLost() && random.IntN(4) == 0 {
			i = w.submitter()
		}
		switch m := w.members[i]; {
		case m == nil:
		case random.IntN(120) == 0 && w.now > quiet && !w.submitterLost() && w.survivesWithout(w.submitter()):
			w.stopped[w.submitter()] = true
			quiet = w.now + 2*silentTicks
		case random.IntN(40) == 0:
			clear(w.stopped)
			quiet = w.now + 2*silentTicks
		case random.IntN(60) == 0:
			w.down[[2]int{i, random.IntN(len(w.members))}] = true
		case w.submitterLost() && len(w.own) < 2 && random.IntN(20) == 0:
			w.resumes(peers)
		case !w.stopped[i] && (i == w.submitter() || w.submitterLost()) && random.IntN(15) == 0 && len(w.words) < 4:
			if p, ok := w.joiner(random.IntN(peers - 1)); ok {
				w.comesAs(p, w.told(i, random)...)
			}
		case random.IntN(100) == 0 && !w.isSubmitter(i):
			w.leave(i)
		case random.IntN(20) == 0:
			w.propose(i, random.IntN(peers-1), view.Failed)
		case random.IntN(20) == 0:
			w.propose(i, random.IntN(peers-1), view.Finished)
		case random.IntN(80) == 0:
			for k := range w.side {
				w.side[k] = random.IntN(2)
			}
		case random.IntN(40) == 0:
			clear(w.side)
			clear(w.down)
			quiet = w.now + 2*silentTicks
		case random.IntN(40) == 0 && w.now > quiet && w.survivesWithout(i):
			w.crash(i)
			quiet = w.now + 2*silentTicks
		}
	}
	if w.formerProcessLives() { // the others may depend on its vote, and do not reach it any more
		w.heal()
		w.ticks(20 * electionTicks)
		return
	}
	w.settle()
}

// removeLeft removes the peers that leave and have no vote, as far as any other knows. One that goes during a partition
// could take the majority with it.
func (w *world) removeLeft() {
	for i, m := range w.members {
		counts := func(other *Member) bool { return other != nil && other != m && (other.Votes(i) || other.tended > 0) }
		if m != nil && m.Left() && !slices.ContainsFunc(w.members, counts) {
			w.crash(i)
		}
	}
}

// formerProcessLives reports whether a process of the submitter has not crashed although there is a later one.
func (w *world) formerProcessLives() bool {
	for i, m := range w.members[:w.submitter()] {
		if m != nil && w.isSubmitter(i) {
			return true
		}
	}
	return false
}

// submitterLost reports whether the last process of the submitter has crashed or is stopped.
func (w *world) submitterLost() bool {
	return w.members[w.submitter()] == nil || w.stopped[w.submitter()]
}

// told returns the members that are told of a newcomer: member i and, if the submitter's peer is lost,
// random others.
func (w *world) told(i int, random *rand.Rand) []int {
	all := []int{i}
	for k, m := range w.members {
		if w.submitterLost() && m != nil && k != i && random.IntN(2) == 0 {
			all = append(all, k)
		}
	}
	return all
}

// survivesWithout reports whether a majority of the members, and every pending change, survives the loss of
// peer i. It returns false while the membership changes.
func (w *world) survivesWithout(i int) bool {
	if len(w.members[i].wanted) > 0 || slices.Max(w.side) > 0 || len(w.down) > 0 {
		return false
	}
	voters := w.members[i].conf.GetVoters()
	n, of := 0, len(voters)
	if !slices.Contains(voters, uint64(i)+1) {
		of++ // it may become a voter at any moment, since the leader has just heard it
	}
	for k, m := range w.members {
		if m == nil || w.stopped[k] || w.isSubmitter(k) && k < w.submitter() { // see Group.writerTo
			continue
		}
		leaves := m.departures.since > 0 && m.Votes(k) // two voters may be left without it at any moment
		if m.tended > 0 || leaves || !slices.Equal(m.conf.GetVoters(), voters) {
			return false
		}
		if k != i && slices.Contains(voters, uint64(k)+1) {
			n++
		}
	}
	return 2*n > of
}

// heal ends all faults.
func (w *world) heal() {
	clear(w.side)
	clear(w.down)
	clear(w.stopped)
	w.loss, w.delay = 0, 1
}

// settle ends all faults and tells all members of the newcomers. It waits until all peers in the group
// agree, and no change is pending.
func (w *world) settle() {
	w.Helper()
	w.heal()
	for i, m := range w.members {
		for _, n := range w.words {
			if m != nil { // the leader is told; others may be told late and repeatedly
				w.tell(i, n)
			}
		}
	}
	w.until("all is agreed on", func() bool {
		leads := slices.IndexFunc(w.members, func(m *Member) bool { return m != nil && m.Leads() })
		if leads < 0 {
			return false
		}
		leader := w.members[leads]
		for _, id := range slices.Concat(leader.conf.GetVoters(), leader.conf.GetLearners()) {
			if m := w.members[id-1]; m != nil && (len(m.wanted) > 0 || m.View().Epoch != leader.View().Epoch) {
				return false
			}
		}
		return true
	})
}
