package submit

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestOutgoingKeepsTheLatestMessageOfAKind(t *testing.T) {
	o := newOutgoing()
	begin := &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{}}}
	for i := range uint64(10000) {
		o.put(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Rank: uint32(i % 2), Stdout: i}}})
		o.put(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: &jobpb.View{Epoch: i}}})
		if i == 0 {
			o.put(begin)
		}
	}
	queue := o.take()
	if len(queue) != 4 {
		t.Fatalf("%d messages wait, want 4", len(queue))
	}
	if queue[0].GetEmitted().GetStdout() != 9998 || queue[1].GetView().GetEpoch() != 9999 || queue[2] != begin || queue[3].GetEmitted().GetStdout() != 9999 {
		t.Errorf("waiting: %v", queue)
	}
	o.put(begin)
	if queue := o.take(); len(queue) != 1 {
		t.Errorf("waiting after all was taken: %v", queue)
	}
}
