package view

import (
	"math/rand/v2"
	"testing"
)

func TestJoinGivesARankAReplicaWithANewIndex(t *testing.T) {
	v, _ := New(2, 2).With(Process{1, 0}, Failed)
	next, p, ok := v.Join(1)
	if !ok || p != (Process{1, 2}) || next.R != 3 || next.Epoch != v.Epoch+1 {
		t.Fatalf("Join returned %v, %v: %+v", p, ok, next)
	}
	if !next.Live(p) || next.State(Process{1, 0}) != Failed || next.State(Process{0, 2}) != Vacant {
		t.Errorf("the states are %v", next.States)
	}
	if m, _ := next.Master(1); m != (Process{1, 1}) {
		t.Errorf("the master is %v, want 1.1", m)
	}
	if v.R != 2 || len(v.States) != 4 {
		t.Error("Join changed its receiver")
	}
	if again, q, _ := next.Join(0); q != (Process{0, 2}) || again.R != 3 {
		t.Errorf("rank 0 joined by %v with R=%d, want 0.2 in the place that was vacant", q, again.R)
	}
}

func TestInvalidJoinsAreRefused(t *testing.T) {
	lost, _ := New(1, 1).With(Process{}, Failed)
	full := New(1, MaxReplicas)
	large := New(MaxProcesses/2, 2)
	cases := map[string]struct {
		v    View
		rank int
	}{
		"a rank without a live replica":     {lost, 0},
		"a rank with MaxReplicas replicas":  {full, 0},
		"a job with MaxProcesses processes": {large, 3},
		"a rank outside the job":            {New(2, 2), 2},
		"a negative rank":                   {New(2, 2), -1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if next, p, ok := c.v.Join(c.rank); ok || next.Epoch != c.v.Epoch {
				t.Errorf("%v joined", p)
			}
		})
	}
}

// TestGrowingViewsStayWellFormed changes views at random and checks the invariants of views: one epoch per change,
// states that only advance, no index used twice, and vacant places only after all others.
func TestGrowingViewsStayWellFormed(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		v := New(1+rnd.IntN(4), 1+rnd.IntN(3))
		for range 40 {
			next, changed := v, false
			rank := rnd.IntN(v.N)
			p := Process{rank, rnd.IntN(v.R + 1)}
			switch rnd.IntN(4) {
			case 0:
				next, changed = v.With(p, Finished)
			case 1:
				next, changed = v.With(p, Failed)
			case 2:
				next, p, changed = v.Join(rank)
				if changed && v.State(p) != Vacant {
					t.Fatalf("seed %d: %v joined %+v", seed, p, v)
				}
			case 3:
				next, changed = v.Promote(p)
			}
			checkChange(t, seed, v, next, p, changed)
			v = next
		}
	}
}

func checkChange(t *testing.T, seed uint64, v, next View, p Process, changed bool) {
	t.Helper()
	if err := next.Valid(); err != nil {
		t.Fatalf("seed %d: %+v becomes %+v: %v", seed, v, next, err)
	}
	if changed != (next.Epoch == v.Epoch+1) || !changed && next.Epoch != v.Epoch {
		t.Fatalf("seed %d: changed %v, epoch %d after %d", seed, changed, next.Epoch, v.Epoch)
	}
	for rank := range next.N {
		for k := range next.R {
			q := Process{rank, k}
			before, after := v.State(q), next.State(q)
			if before != after && (q != p || before != Vacant && after < before) {
				t.Fatalf("seed %d: %v was %v and is %v", seed, q, before, after)
			}
		}
	}
}
