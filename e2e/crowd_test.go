package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A stay is the time in which a job's processes ran at their peers.
type stay struct {
	from, to time.Time
	placed   map[string]string // peer of each process
}

// stay reads the events of an ended p2prun.
func (j *job) stay() stay {
	j.t.Helper()
	var s stay
	for e := range j.events {
		switch {
		case e.Event == "placed":
			j.notePlaced(e)
		case e.Event == "phase" && e.Phase == "running":
			s.from = e.Time
		case e.Event == "phase" && (e.Phase == "collecting" || e.Phase == "releasing") && s.to.IsZero():
			s.to = e.Time
		}
	}
	s.placed = j.placed
	if s.from.IsZero() || s.to.IsZero() || len(s.placed) == 0 {
		j.t.Errorf("job ran from %v to %v at %v", s.from, s.to, s.placed)
	}
	return s
}

// TestCrowdOfSubmitters runs six submitters that together request three times the slots of ten
// peers, at once. No slot is given twice (S1), every job runs in the end, and nothing stays
// reserved (S4). With -full, the jobs are long enough to measure the use of the slots: see
// docs/networking.md.
func TestCrowdOfSubmitters(t *testing.T) {
	t.Parallel()
	const slots = 2
	steps, wait := 30, "200"
	if *full {
		steps, wait = 400, "900" // a busy machine may need longer for the jobs
	}
	peers := grid(t, 10, "--slots", strconv.Itoa(slots))
	ranks := []int{3, 7, 4, 6, 5, 5} // with 2 replicas each: 60 processes
	var jobs []*job
	for _, n := range ranks {
		jobs = append(jobs, submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", strconv.Itoa(n), "-r", "2", "-w", wait,
			filepath.Join(bin, "stepper"), "-steps", strconv.Itoa(steps), "-every", strconv.Itoa(steps), "-work", "1ms", "-pause", "100ms"))
	}
	var all []stay
	for i, j := range jobs {
		if s := j.wait(); s != 0 {
			t.Fatalf("a job of %d ranks: exit status %d", ranks[i], s)
		}
		expectStepper(t, j, ranks[i], steps, steps)
		all = append(all, j.stay())
	}
	expectNoSlotTwice(t, all, slots)
	t.Logf("%.0f %% of the slots ran processes while jobs waited", 100*used(all, slots*len(peers)))
	expectNothingLeft(t, peers)
}

// expectNoSlotTwice counts the processes at each peer at the start of every job.
func expectNoSlotTwice(t *testing.T, all []stay, slots int) {
	t.Helper()
	for _, now := range all {
		at := make(map[string]int)
		for _, s := range all {
			if s.from.After(now.from) || !now.from.Before(s.to) {
				continue
			}
			for _, peer := range s.placed {
				at[peer]++
			}
		}
		for peer, n := range at {
			if n > slots {
				t.Errorf("S1: %d processes at %s, which has %d slots", n, peer, slots)
			}
		}
	}
}

// used returns the share of slots in use between the first job's start and the last job's start. In
// this time, more slots were requested than free.
func used(all []stay, slots int) float64 {
	byBegin := slices.SortedFunc(slices.Values(all), func(a, b stay) int { return a.from.Compare(b.from) })
	first, last := byBegin[0].from, byBegin[len(byBegin)-1].from
	var ran time.Duration
	for _, s := range all {
		to := s.to
		if to.After(last) {
			to = last
		}
		ran += time.Duration(len(s.placed)) * max(0, to.Sub(s.from))
	}
	return float64(ran) / float64(time.Duration(slots)*last.Sub(first))
}
