package reservation

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// TestJobLeavesAllQueuesOnceItHasItsSlots: a job that has waited at six peers gets its slots at the first
// two that it asks again. The others keep no slots for the job.
func TestJobLeavesAllQueuesOnceItHasItsSlots(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := newMemoryNet(1, 20*time.Millisecond, 1, 1, 1, 1, 1, 1)
		for _, p := range net.peers {
			if _, err := p.ledger.Hold(Request{Job: "other", Submitter: bob, Slots: 1}, newKey(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		cs := net.offers()
		for i := range cs {
			cs[i].Total = 1
		}
		need := Need{Job: "j", N: 1, R: 2, Since: time.Now(), Waits: true}
		if _, err := Reserve(t.Context(), submitter{net, alice}, cs, need); err == nil {
			t.Fatal("slots in use were reserved")
		}
		waits := 0
		for _, p := range net.peers {
			waits += len(p.ledger.queue)
		}
		if waits < 5 {
			t.Fatalf("the job waits at %d peers", waits)
		}
		net.peers["a"].ledger.Withdraw("other", bob, false)
		net.peers["b"].ledger.Withdraw("other", bob, false)
		cs[0].Slots, cs[1].Slots = 1, 1
		if _, err := Reserve(t.Context(), submitter{net, alice}, cs, need); err != nil {
			t.Fatal(err)
		}
		for id, p := range net.peers {
			if len(p.ledger.queue) > 0 {
				t.Errorf("a request still waits at %s", id)
			}
		}
	})
}
