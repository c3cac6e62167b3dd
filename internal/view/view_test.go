package view

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestNextMasterIsLowestLiveReplica(t *testing.T) {
	v := New(2, 3)
	steps := []struct {
		fail   Process
		master Process
		ok     bool
	}{
		{Process{1, 1}, Process{1, 0}, true},
		{Process{1, 0}, Process{1, 2}, true},
		{Process{1, 2}, Process{}, false},
	}
	for _, s := range steps {
		next, changed := v.With(s.fail, Failed)
		if !changed || next.Epoch != v.Epoch+1 {
			t.Fatalf("failing %v: epoch %d, changed %v; want epoch %d", s.fail, next.Epoch, changed, v.Epoch+1)
		}
		v = next
		if got, ok := v.Master(1); got != s.master || ok != s.ok {
			t.Errorf("after %v failed: master %v %v, want %v %v", s.fail, got, ok, s.master, s.ok)
		}
	}
	if got, ok := v.Master(0); got != (Process{0, 0}) || !ok {
		t.Errorf("rank 0 has changed: master %v %v", got, ok)
	}
}

func TestFailedIsFinal(t *testing.T) {
	v, _ := New(1, 2).With(Process{0, 0}, Failed)
	for _, s := range []State{Live, Finished, Failed} {
		if _, changed := v.With(Process{0, 0}, s); changed {
			t.Errorf("a failed process became %v", s)
		}
	}
}

func TestPromote(t *testing.T) {
	v := New(2, 3)
	second := Process{1, 2}
	next, changed := v.Promote(second)
	if m, _ := next.Master(1); !changed || m != second || next.Epoch != v.Epoch+1 || next.Since[1] != next.Epoch || next.Valid() != nil {
		t.Fatalf("%+v, changed %v: want 1.2 as master in the next epoch", next, changed)
	}
	if m, _ := v.Master(1); m != (Process{1, 0}) {
		t.Error("Promote changed its receiver")
	}
	if _, changed := next.Promote(second); changed {
		t.Error("a master was promoted")
	}
	if other, _ := next.With(Process{1, 1}, Failed); !other.IsMaster(second) || other.Since[1] != next.Epoch {
		t.Error("the master changed when another replica failed")
	}
	next, _ = next.With(second, Failed)
	if m, _ := next.Master(1); m != (Process{1, 0}) || next.Since[1] != next.Epoch {
		t.Errorf("after %v failed, the master is %v; want 1.0", second, m)
	}
	if _, changed := next.Promote(second); changed {
		t.Error("a failed process was promoted")
	}
	if _, changed := next.Promote(Process{2, 0}); changed {
		t.Error("a process outside the job was promoted")
	}
}

func TestFirstFinishedReplicaIsOutputLeader(t *testing.T) {
	v, _ := New(1, 2).With(Process{0, 0}, Finished)
	if m, _ := v.Master(0); m != (Process{0, 1}) {
		t.Errorf("the master is %v, want 0.1", m)
	}
	if !v.IsOutputLeader(Process{0, 0}) || v.IsOutputLeader(Process{0, 1}) {
		t.Error("a finished process is no longer the output leader")
	}
	v, changed := v.With(Process{0, 0}, Failed)
	if !changed || !v.IsOutputLeader(Process{0, 1}) {
		t.Error("after the finished process failed, its rank has no output leader")
	}
	if v, _ = New(1, 2).With(Process{0, 1}, Finished); !v.IsOutputLeader(Process{0, 1}) {
		t.Error("a finished replica is not the output leader")
	}
}

func TestWithDoesNotChangeItsReceiver(t *testing.T) {
	v := New(2, 2)
	v.With(Process{1, 1}, Failed)
	if !v.Live(Process{1, 1}) {
		t.Error("With changed its receiver")
	}
}

func TestViewInJSONIsReadable(t *testing.T) {
	v, _ := New(1, 2).With(Process{0, 0}, Failed)
	b, err := json.Marshal(v)
	want := `{"epoch":2,"n":1,"r":2,"states":["failed","live"],"masters":[1],"since":[2]}`
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v; want %s", b, err, want)
	}
	var got View
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("the view decodes to %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"states":["asleep"]}`), &got); err == nil {
		t.Error("an unknown state was accepted")
	}
}

func TestValid(t *testing.T) {
	bad := []View{
		{},
		{N: 1, R: 1},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}, Masters: []int{0}},
		{Epoch: 2, N: 1, R: 1, States: []State{9}, Masters: []int{0}, Since: []uint64{1}},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}, Masters: []int{1}, Since: []uint64{1}},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}, Masters: []int{-1}, Since: []uint64{1}},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}, Masters: []int{0}, Since: []uint64{3}},
		{Epoch: 2, N: 1, R: 1, States: []State{Live}, Masters: []int{0}, Since: []uint64{0}},
		{Epoch: 2, N: 1, R: 2, States: []State{Live, Finished}, Masters: []int{1}, Since: []uint64{1}},
		{N: -1, R: -1, States: []State{Live}},
		{N: 1 << 40, R: 1 << 40},
	}
	for _, v := range bad {
		if v.Valid() == nil {
			t.Errorf("%+v is valid", v)
		}
	}
	if err := New(3, 2).Valid(); err != nil {
		t.Error(err)
	}
}
