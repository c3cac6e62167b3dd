package jobpb

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestViewsAndProcessesRoundTrip(t *testing.T) {
	v, _ := view.New(3, 2).With(view.Process{Rank: 2, Replica: 1}, view.Failed)
	v, _ = v.With(view.Process{Rank: 1}, view.Finished)
	v, _ = v.Promote(view.Process{Replica: 1})
	got, err := FromView(v).View()
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("got %+v, %v; want %+v", got, err, v)
	}
	for _, p := range v.Processes() {
		if got := FromProcess(p).View(); got != p {
			t.Errorf("got %v, want %v", got, p)
		}
	}
	if got := (*Process)(nil).View(); got != (view.Process{}) {
		t.Errorf("no process is %v", got)
	}
}

// FuzzView checks that a decoded view is valid, and that a view has one encoding.
func FuzzView(f *testing.F) {
	for _, m := range []*View{
		FromView(view.New(2, 2)), {}, {N: 1 << 31, R: 1 << 31}, {N: 1, R: 1, States: []byte{9}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m View
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		v, err := m.View()
		if err != nil {
			return
		}
		if err := v.Valid(); err != nil {
			t.Errorf("%+v was taken: %v", v, err)
		}
		if again, err := FromView(v).View(); err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("%+v comes back as %+v, %v", v, again, err)
		}
	})
}

// FuzzDivergence checks that a decoded divergence is one that a process of the job can report, and that it
// is unchanged after encoding and decoding.
func FuzzDivergence(f *testing.F) {
	d := protection.Divergence{Receiver: view.Process{Rank: 1}, Context: 256, Seq: 1, Tag: -1, Length: 8, Produced: 1, Received: 2}
	for _, m := range []*Diverged{
		FromDivergence(view.Process{}, d), {}, {Seq: 1}, {Seq: 1, Receiver: &Process{Rank: 1 << 31}}, {Process: &Process{Rank: 9}, Seq: 1},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	v := view.New(2, 2)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Diverged
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		d, err := m.Divergence(v)
		if err != nil {
			return
		}
		if p := m.GetProcess().View(); !v.Contains(p) || !v.Contains(d.Receiver) || p.Rank == d.Receiver.Rank {
			t.Errorf("%v says %v", p, d)
		}
		if again, err := FromDivergence(m.GetProcess().View(), d).Divergence(v); err != nil || again != d {
			t.Errorf("%+v comes back as %+v, %v", d, again, err)
		}
	})
}
