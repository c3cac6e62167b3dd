package engine

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestRankIsOverWhenItsRingsAreDrained checks that a rank counts as finalized only once no replica
// is live and the rings no longer hold its messages.
func TestRankIsOverWhenItsRingsAreDrained(t *testing.T) {
	var f finalized
	v := view.New(2, 2)
	for k, finished := range []bool{false, true} {
		v, _ = v.With(view.Process{Rank: 1, Replica: k}, view.Finished)
		if f.record(v, 0); f.any != finished || f.undrained != finished || f.over(1) {
			t.Errorf("after replica %d: finalized %v, undrained %v, over %v", k, f.any, f.undrained, f.over(1))
		}
	}
	if f.undrained = false; !f.over(1) || f.over(0) || f.over(AnySource) {
		t.Errorf("rank 1 over %v, rank 0 over %v, want only rank 1", f.over(1), f.over(0))
	}
}
