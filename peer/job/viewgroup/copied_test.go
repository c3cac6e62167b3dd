package viewgroup

import (
	"reflect"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestV1CopiedSubmitterDoesNotSplitTheViews resumes a job from two copies of a home: two processes of the submitter have
// the same number, and each peer reaches sometimes one and sometimes the other. No two peers continue with different
// views. Peers that stop have found that the submitter's peer contradicts itself.
func TestV1CopiedSubmitterDoesNotSplitTheViews(t *testing.T) {
	skip.Long(t)
	const peers = 5
	for seed := range uint64(20) {
		w := newWorld(t, 10_000+seed, peers)
		w.delay, w.split = 1+int(seed%4), true // the view of a copy may differ
		w.ticks(3)
		w.propose(2, 0, view.Finished)
		w.ticks(int(seed % 40))
		w.crash(submitterPeer)
		w.ticks(int(7*seed) % (2 * cutOffTicks))
		k := w.resumes(peers)
		other, its := w.members[k], w.views[k]
		w.members, w.views, w.side = w.members[:k], w.views[:k], w.side[:k]
		w.liar = w.resumes(peers)
		for i := range 400 {
			if w.random.IntN(1+int(seed%37)) == 0 {
				w.members[k], other, w.views[k], its = other, w.members[k], its, w.views[k]
			}
			if i%100 == 50 {
				w.propose(k, 1+w.random.IntN(3), []view.State{view.Finished, view.Failed}[w.random.IntN(2)])
			}
			w.tick()
		}
		for _, m := range w.members[1:peers] {
			for _, n := range w.members[1:peers] {
				if a, b := m.View(), n.View(); m.broken == nil && n.broken == nil && a.Epoch == b.Epoch && !reflect.DeepEqual(a, b) {
					t.Errorf("seed %d: peers have different views: %v, %v", seed, a, b)
				}
			}
		}
	}
}
