package job

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestMinorityAtInit(t *testing.T) {
	rank := func(n int) (ps []view.Process) {
		for k := range n {
			ps = append(ps, proc(0, k))
		}
		return ps
	}
	for _, tt := range []struct {
		name            string
		called, skipped int
		missing         int // replicas that have done neither yet
		split           bool
		odd             []int
	}{
		{"all called", 3, 0, 0, false, nil},
		{"all skipped", 0, 3, 0, false, nil},
		{"one of two skipped", 1, 1, 0, true, nil},
		{"one of three skipped", 2, 1, 0, true, []int{2}},
		{"one of three called", 1, 2, 0, true, []int{0}},
		{"two of four skipped", 2, 2, 0, true, nil},
		{"one is missing", 1, 1, 1, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := rank(tt.called + tt.skipped)
			e := entries{called: all[:tt.called], skipped: all[tt.called:], all: len(all) + tt.missing}
			if got := e.split(); got != tt.split {
				t.Errorf("split %v, want %v", got, tt.split)
			}
			if !tt.split {
				return
			}
			odd, why := e.minority()
			var replicas []int
			for _, p := range odd {
				replicas = append(replicas, p.Replica)
			}
			if !slices.Equal(replicas, tt.odd) || (why == "") != (odd == nil) {
				t.Errorf("odd %v for reason %q, want %v", replicas, why, tt.odd)
			}
		})
	}
}
