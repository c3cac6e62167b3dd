package job

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestV4ReplicaThatNeverCallsInitIsFailed: a process that does not call mpj.Init is failed when most
// replicas of its rank have waited there for a multiple of the time that they took. Other ranks have
// no influence.
func TestV4ReplicaThatNeverCallsInitIsFailed(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	v := view.New(2, 3)
	n := NewEntry(start)
	n.Initialized(proc(0, 0), at(30))
	n.Initialized(proc(0, 1), at(30))
	n.Initialized(proc(1, 0), at(1))
	n.Initialized(proc(1, 1), at(1))
	for _, c := range []struct {
		seconds int
		want    []view.Process
	}{
		{60, nil},
		{61, []view.Process{proc(1, 2)}},
		{149, []view.Process{proc(1, 2)}},
		{150, []view.Process{proc(0, 2), proc(1, 2)}},
	} {
		if got := n.Overdue(v, time.Minute, at(c.seconds)); !slices.Equal(got, c.want) {
			t.Errorf("after %d s: overdue %v, want %v", c.seconds, got, c.want)
		}
	}
	n = NewEntry(start)
	for k := range 3 {
		n.Initialized(proc(0, k), at(1))
	}
	if got := n.Overdue(v, time.Minute, at(1e6)); got != nil {
		t.Errorf("%v are overdue, although no replica of their rank has called mpj.Init", got)
	}
}

// TestV4EarlyInitOfALiarFailsNoReplica: a replica that reports mpj.Init at once does not make a
// slower, honest replica overdue. Otherwise the liar would be alone in its rank.
func TestV4EarlyInitOfALiarFailsNoReplica(t *testing.T) {
	start := time.Unix(0, 0)
	for r := 2; r <= 3; r++ {
		v, n := view.New(2, r), NewEntry(start)
		n.Initialized(proc(0, 0), start)
		n.Initialized(proc(1, 0), start)
		if got := n.Overdue(v, time.Minute, start.Add(time.Hour)); got != nil {
			t.Errorf("with %d replicas, %v are overdue by the report of one", r, got)
		}
	}
}

// TestV4TwoReplicasDivergeAtInit: one of two replicas has been waiting in mpj.Init for long, and
// the submitter cannot tell which of the two peers lies.
func TestV4TwoReplicasDivergeAtInit(t *testing.T) {
	start := time.Unix(0, 0)
	for r := 1; r <= 3; r++ {
		v, n := view.New(2, r), NewEntry(start)
		n.Initialized(proc(1, 0), start.Add(time.Second))
		if _, _, ok := n.Undecided(v, time.Minute, start.Add(time.Minute)); ok {
			t.Errorf("with %d replicas, they have diverged early", r)
		}
		missing, waiting, ok := n.Undecided(v, time.Minute, start.Add(61*time.Second))
		if ok != (r == 2) || ok && (missing != proc(1, 1) || waiting != proc(1, 0)) {
			t.Errorf("with %d replicas: missing %v, waiting %v, %v", r, missing, waiting, ok)
		}
	}
}

// TestV4TwoReplicasDivergeAtTheEnd: the program does not use mpj, and one of two replicas ended
// long ago.
func TestV4TwoReplicasDivergeAtTheEnd(t *testing.T) {
	start := time.Unix(0, 0)
	v, n := view.New(1, 2), NewEntry(start)
	v.States[0] = view.Finished
	n.Arrived(proc(0, 0), start.Add(time.Minute))
	if _, _, ok := n.Undecided(v, time.Minute, start.Add(299*time.Second)); ok {
		t.Error("the replicas have diverged before the other one had four times as long")
	}
	if missing, _, ok := n.Undecided(v, time.Minute, start.Add(300*time.Second)); !ok || missing != proc(0, 1) {
		t.Errorf("missing %v, %v", missing, ok)
	}
	if got := n.ToTell(v, time.Minute, start.Add(time.Hour)); got != nil {
		t.Errorf("the user is told that the job waits for mpj.Init of %v", got)
	}
}

// TestMissingProcessesAreReported: the user is told once which processes are missing, and only if the
// program calls mpj.Init.
func TestMissingProcessesAreReported(t *testing.T) {
	start := time.Unix(0, 0)
	v, n := view.New(2, 1), NewEntry(start)
	if got := n.ToTell(v, time.Minute, start.Add(time.Hour)); got != nil {
		t.Errorf("told of %v, although the program does not use mpj", got)
	}
	n.Initialized(proc(0, 0), start.Add(time.Second))
	if got := n.ToTell(v, time.Minute, start.Add(59*time.Second)); got != nil {
		t.Errorf("told of %v early", got)
	}
	if got := n.ToTell(v, time.Minute, start.Add(time.Minute)); !slices.Equal(got, []view.Process{proc(1, 0)}) {
		t.Errorf("told of %v, want 1.0", got)
	}
	if got := n.ToTell(v, time.Minute, start.Add(time.Hour)); got != nil {
		t.Errorf("told of %v again", got)
	}
}

// TestSuspendedTimeDoesNotCount covers time in which a process is suspended, and time
// in which this process did not run.
func TestSuspendedTimeDoesNotCount(t *testing.T) {
	start := time.Unix(0, 0)
	for name, lost := range map[string]bool{"suspended": true, "this process did not run": false} {
		v, n, now := view.New(1, 2), NewEntry(start), start
		n.Initialized(proc(0, 0), start.Add(time.Second))
		if lost {
			for range 3600 {
				now = now.Add(EntryPeriod)
				n.Look(now, true)
			}
		} else {
			now = now.Add(time.Hour)
			n.Look(now, false)
		}
		if _, _, ok := n.Undecided(v, time.Minute, now); ok {
			t.Errorf("%s: the time was counted", name)
		}
		for range 70 {
			now = now.Add(EntryPeriod)
			n.Look(now, false)
		}
		if _, _, ok := n.Undecided(v, time.Minute, now); !ok {
			t.Errorf("%s: the time afterwards was not counted", name)
		}
	}
}
