package nemesis

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	for number := range 100 {
		if a, b := Of(7, number), Of(7, number); !reflect.DeepEqual(a, b) {
			t.Fatalf("round %d is %+v and %+v", number, a, b)
		}
	}
	if reflect.DeepEqual(Of(7, 0), Of(7, 1)) || reflect.DeepEqual(Of(7, 0), Of(8, 0)) {
		t.Error("other rounds or seeds give the same plan")
	}
}

// TestPlansAreWithinBounds checks that plans keep their bounds, and that every kind of fault occurs.
func TestPlansAreWithinBounds(t *testing.T) {
	struck, run, lied := make(map[Kind]int), make(map[string]int), make(map[string]int)
	for number := range 300 {
		for _, j := range Of(1, number).Jobs {
			run[j.Program]++
			lied[j.Lie]++
			if j.Lie != "" && (j.Beyond || j.Early != Early{}) {
				t.Errorf("no honest replica may be left: %+v", j)
			}
			if j.N*j.R > (Peers-2)*Slots || j.R > Peers-2 {
				t.Errorf("there is no room for %d times %d processes", j.N, j.R)
			}
			if !slices.IsSortedFunc(j.Strikes, func(a, b Strike) int { return int(a.At - b.At) }) {
				t.Errorf("strikes are out of order: %v", j.Strikes)
			}
			for _, s := range j.Strikes {
				struck[s.Kind]++
				for _, p := range []Process{s.Victim, s.Other} {
					if p.Rank < 0 || p.Rank >= j.N || p.Replica < 0 || p.Replica >= j.R {
						t.Errorf("a strike at %v in a job of %d times %d", p, j.N, j.R)
					}
				}
				if s.Much < 0 || s.Much > 0.3 || s.Kind == Loss && s.Much > 0.05 || s.By < 0 && s.Kind != Clock || s.For < 0 {
					t.Errorf("the strike is out of bounds: %+v", s)
				}
			}
		}
	}
	for _, k := range kinds() {
		if struck[k] == 0 {
			t.Errorf("no plan contains a strike of kind %s", k)
		}
	}
	for _, l := range append([]string{""}, Lies...) {
		if lied[l] == 0 {
			t.Errorf("no plan contains the lie %q", l)
		}
	}
	for _, p := range Programs {
		if run[p] == 0 {
			t.Errorf("no plan contains the program %s", p)
		}
	}
}

// TestHarmlessPausesAreTolerated checks that a process or a peer that is only paused runs again before it can be
// reported as failed, with half a second to spare.
func TestHarmlessPausesAreTolerated(t *testing.T) {
	const spare = 500 * time.Millisecond
	for _, k := range []Kind{PauseProcess, PausePeer, Blink} {
		if longest := traitOf(k).most; longest > faultdetect.DefaultGroupHang-spare {
			t.Errorf("%s lasts up to %v, and jobs tolerate %v", k, longest, faultdetect.DefaultGroupHang)
		}
	}
}
