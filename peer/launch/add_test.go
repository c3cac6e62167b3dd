package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// addition runs as an added process that opens a channel to an earlier one, or as that earlier process.
func addition() int {
	l := enter(version.Protocol)
	text, err := os.ReadFile("in/data")
	fmt.Printf("%v joins %v has %s %v\n", l.self, l.setup.Joining, text, err)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	switch l.self {
	case view.Process{Replica: 2}:
		to := view.Process{Rank: 1}
		l.say(proclink.Open, func(m *proclink.Message) { m.Process = &to })
		fmt.Printf("there: %s, live %v\n", l.await(proclink.Channel).Kind, l.view.Live(l.self))
		l.say(proclink.Healed, func(m *proclink.Message) { m.Count = 5 })
	case view.Process{Rank: 1}:
		fmt.Println("here is", *l.await(proclink.Accept).Process)
	default:
		l.await(proclink.Bye) // never arrives
	}
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// startAdding starts a job of two ranks with two replicas each. Rank 0 has lost its replica on peer 0.
func startAdding(t *testing.T) (j *testJob, after view.View) {
	t.Helper()
	return startAddingWith(t, limits.Grant{})
}

// startAddingWith is like startAdding, on peers with the given grant.
func startAddingWith(t *testing.T, grant limits.Grant) (j *testJob, after view.View) {
	t.Helper()
	b := newTestbed(t, 2, 3)
	for _, peer := range b.peers {
		peer.launch.config.Grant = grant
	}
	j = b.newJob(t, 2, 2, map[string]string{"in/data": "inputs"}, "add")
	start := j.startMessage()
	start.GetStart().Heal = true
	j.prepare()
	j.tell(start)
	for _, l := range j.links {
		await(l, (*jobpb.FromPeer).GetStarted)
	}
	j.awaitInitialized()
	j.begin()
	after, _ = view.New(2, 2).With(view.Process{}, view.Failed)
	j.tellView(after)
	return j, after
}

func (j *testJob) addMessage(p view.Process, key reservation.Key) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Add{Add: &jobpb.Add{Process: jobpb.FromProcess(p), Key: key[:]}}}
}

// adds makes a peer add a process, with its own slot, and returns the answer.
func (j *testJob) adds(peer int, p view.Process) *jobpb.Added {
	j.Helper()
	j.links[peer].say(j.addMessage(p, j.reserve(j.peers[peer], 1)))
	return await(j.links[peer], (*jobpb.FromPeer).GetAdded)
}

func dropMessage(p view.Process, key reservation.Key) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Drop{Drop: &jobpb.Drop{Process: jobpb.FromProcess(p), Key: key[:]}}}
}

// freeSlots waits until that many slots of a peer are free.
func (j *testJob) freeSlots(peer, want int) {
	j.Helper()
	slots := j.peers[peer].reservations
	for until := time.After(eventTimeout); slots.Snapshot().Free != want; {
		select {
		case <-slots.Changed():
		case <-until:
			j.Fatalf("slots of peer %d: %+v, want %d free", peer, slots.Snapshot(), want)
		}
	}
}

// notAdded waits until peer 0 reports that nothing is left of the process that was added with the key.
func (j *testJob) notAdded(p view.Process, key reservation.Key) {
	j.Helper()
	await(j.links[0], func(m *jobpb.FromPeer) *jobpb.Added {
		if a := m.GetAdded(); a.GetError() != "" && a.Process.View() == p && reservation.Key(a.Key) == key {
			return a
		}
		return nil
	})
}

// until waits until a condition holds on peer 0.
func (j *testJob) until(ok func(*job) bool) {
	j.Helper()
	here := j.hosted(0)
	for begun := time.Now(); !answered(j.T, here, func() bool { return ok(here) }); time.Sleep(time.Millisecond) { // interval between polls
		if time.Since(begun) > eventTimeout {
			j.Fatal("the condition never held")
		}
	}
}

// TestProcessIsAddedToARunningPart checks that an added process takes its own slot and waits until it is
// in the view. Then it has channels to the other processes here, and nothing of it is left after the job
// (S4).
func TestProcessIsAddedToARunningPart(t *testing.T) {
	j, v := startAdding(t)
	p := view.Process{Replica: 2}
	a := j.adds(0, p)
	if a.Error != "" || a.Process.View() != p {
		t.Fatalf("added: %v", a)
	}
	j.freeSlots(0, 0)
	i := await(j.links[0], (*jobpb.FromPeer).GetInitialized)
	row := j.member(p, j.peers[0])
	row.Key = i.Key
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
	j.links[0].say(dropMessage(p, reservation.Key(a.Key))) // too late: other processes have been told
	v, _, _ = v.Join(0)
	j.tellView(v)
	if h := await(j.links[0], (*jobpb.FromPeer).GetHealed); h.Process.View() != p || h.Messages != 5 {
		t.Errorf("healed: %v", h)
	}
	j.links[0].exited(p)
	j.links[0].exited(view.Process{Rank: 1})
	if got, want := j.links[0].output(view.Process{Rank: 1}, 1), "1.0 joins false has inputs <nil>\nhere is 0.2\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	v, _ = v.With(view.Process{Replica: 1}, view.Failed)
	j.tellView(v)
	if got, want := j.links[0].output(p, 1), "0.2 joins true has inputs <nil>\nthere: shm, live true\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	j.stop()
}

// TestS4DroppedProcessReleasesEverything checks that the slot of a dropped process is free and its folder is
// removed while the job continues, whether the submitter drops it or another peer runs it. The same process
// may be added again.
func TestS4DroppedProcessReleasesEverything(t *testing.T) {
	j, v := startAdding(t)
	p := view.Process{Replica: 2}
	for _, how := range []string{"dropped", "dropped at once", "another peer has it"} {
		key := j.reserve(j.peers[0], 1)
		j.links[0].say(j.addMessage(p, key))
		if how != "dropped at once" {
			if a := await(j.links[0], (*jobpb.FromPeer).GetAdded); a.Error != "" {
				t.Fatalf("%s: %v", how, a)
			}
		}
		if how == "another peer has it" {
			j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: j.member(p, j.submitter)}})
		} else {
			j.links[0].say(dropMessage(p, key))
		}
		j.notAdded(p, key)
		j.links[0].kept = nil
		j.freeSlots(0, 1)
		if left, _ := filepath.Glob(filepath.Join(j.peers[0].home, "scratch", "*", p.String())); len(left) > 0 {
			t.Errorf("%s: %v is left", how, left)
		}
	}
	v, _, _ = v.Join(0)
	j.tellView(v)
	j.until(func(here *job) bool { return here.views.current.Epoch == v.Epoch })
	j.stop()
}

// TestPeerRefusesAProcessThatItCannotAdd checks that a peer refuses a process that it cannot run, such
// as a second replica of a rank, and keeps no slot for it (S4).
func TestPeerRefusesAProcessThatItCannotAdd(t *testing.T) {
	j, _ := startAdding(t)
	for _, tt := range []struct {
		peer int
		p    view.Process
		want string
	}{
		{0, view.Process{Rank: 1, Replica: 2}, "process 1.0 of the same rank is here"},
		{1, view.Process{Replica: 2}, "process 0.1 of the same rank is here"},
	} {
		if a := j.adds(tt.peer, tt.p); !strings.Contains(a.Error, tt.want) {
			t.Errorf("%v at peer %d: %q, want %q", tt.p, tt.peer, a.Error, tt.want)
		}
		j.freeSlots(tt.peer, 1)
	}
	j.links[0].say(j.addMessage(view.Process{Replica: 2}, reservation.Key{1}))
	if a := await(j.links[0], (*jobpb.FromPeer).GetAdded); !strings.Contains(a.Error, "redeem reservation key") {
		t.Errorf("with another submitter's key: error %q", a.Error)
	}
	p := view.Process{Replica: 2}
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: j.member(p, j.submitter)}})
	if a := j.adds(0, p); !strings.Contains(a.Error, "process 0.2 runs on peer") {
		t.Errorf("process that runs on another peer: error %q", a.Error)
	}
	j.freeSlots(0, 1)
	j.stop()
}

// TestDropAppliesToOneAttempt checks that a repeated Drop does not end a process that was added later.
func TestDropAppliesToOneAttempt(t *testing.T) {
	j, _ := startAdding(t)
	p := view.Process{Replica: 2}
	first := j.reserve(j.peers[0], 1)
	j.links[0].say(j.addMessage(p, first))
	j.links[0].say(dropMessage(p, first))
	j.notAdded(p, first)
	j.links[0].kept = nil
	if a := j.adds(0, p); a.Error != "" {
		t.Fatal(a)
	}
	j.links[0].say(dropMessage(p, first))
	j.notAdded(p, first)
	here := j.hosted(0)
	if there := answered(t, here, func() bool { return here.here.local[p] != nil && !here.here.local[p].killed }); !there {
		t.Error("the process was killed")
	}
	j.stop()
}

// TestMalformedKeysEndTheJob checks that malformed keys end the job, since a peer repeats keys in its
// answers (O4).
func TestMalformedKeysEndTheJob(t *testing.T) {
	p := jobpb.FromProcess(view.Process{Replica: 2})
	for name, m := range map[string]*jobpb.ToPeer{
		"add":  {Body: &jobpb.ToPeer_Add{Add: &jobpb.Add{Process: p, Key: make([]byte, 1<<10)}}},
		"drop": {Body: &jobpb.ToPeer_Drop{Drop: &jobpb.Drop{Process: p, Key: make([]byte, 1<<10)}}},
		"none": {Body: &jobpb.ToPeer_Add{Add: &jobpb.Add{}}},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := startAdding(t)
			here := j.hosted(0)
			j.links[0].say(m)
			<-here.done
			if here.ended == nil {
				t.Error("the job continues")
			}
		})
	}
}

// TestJoiningProcessEndsWithoutASubmitter checks that a process that waits to join ends if the submitter
// is lost. Otherwise it would keep its slot, and those of all others, until the job ends.
func TestJoiningProcessEndsWithoutASubmitter(t *testing.T) {
	j, _ := startAdding(t)
	p := view.Process{Replica: 2}
	if a := j.adds(0, p); a.Error != "" {
		t.Fatal(a)
	}
	await(j.links[0], (*jobpb.FromPeer).GetInitialized)
	here := j.hosted(0)
	answered(t, here, func() bool {
		attached := here.control.stream
		here.endJoining()
		ended := here.here.local[p].killed
		here.control.stream = nil
		here.endJoining()
		here.control.stream = attached
		return ended
	})
	if e := j.links[0].exited(p); !strings.Contains(e.Reason, "its submitter is not connected") {
		t.Errorf("ended with %v", e)
	}
	j.stop()
}

// TestJobLimitsIncludeAddedSlots checks that the job's limits include the slot of an added process until
// it is dropped.
func TestJobLimitsIncludeAddedSlots(t *testing.T) {
	j, _ := startAddingWith(t, limits.Grant{Slot: limits.Limits{CPU: 150}})
	j.need(cgroup.CPU)
	p := view.Process{Replica: 2}
	key := j.reserve(j.peers[0], 1)
	quota := func(want string) {
		t.Helper()
		here, found := j.hosted(0), false
		for _, f := range answered(t, here, func() []string { return here.confinement.group.Folders() }) {
			for _, file := range []string{"cpu.max", "cpu.cfs_quota_us"} {
				if text, err := os.ReadFile(filepath.Join(f, file)); err == nil {
					found = true
					if got := strings.Fields(string(text))[0]; got != want {
						t.Errorf("%s is %s, want %s", file, got, want)
					}
				}
			}
		}
		if !found {
			t.Error("no quota")
		}
	}
	quota("300000")
	j.links[0].say(j.addMessage(p, key))
	await(j.links[0], (*jobpb.FromPeer).GetAdded)
	quota("450000")
	j.links[0].say(dropMessage(p, key))
	j.notAdded(p, key)
	quota("300000")
	j.stop()
}

// TestGuardMeasuresAnAddedProcess checks that the meter of an added process replaces that of a dropped one
// with the same folder, whose contents count once.
func TestGuardMeasuresAnAddedProcess(t *testing.T) {
	j, _ := startAdding(t)
	here, instances := j.hosted(0), j.instances(0)
	g := newGuard(here, instances)
	n := len(g.meters)
	if g.check(); g.room <= 0 {
		t.Errorf("room for %d bytes", g.room)
	}
	g.add(newMeter(g.meters[0].process, instances[0]))
	if g.room != 0 {
		t.Errorf("the added process may write %d bytes before it is measured", g.room)
	}
	if len(g.meters) != n {
		t.Errorf("%d meters, want %d", len(g.meters), n)
	}
	j.stop()
}

// TestS4EndDuringAnAdditionReleasesEverything ends a job at each step of an addition.
func TestS4EndDuringAnAdditionReleasesEverything(t *testing.T) {
	for _, waits := range []bool{false, true} {
		j, _ := startAdding(t)
		p := view.Process{Replica: 2}
		j.links[0].say(j.addMessage(p, j.reserve(j.peers[0], 1)))
		if waits {
			await(j.links[0], (*jobpb.FromPeer).GetAdded)
		}
		j.stop()
		j.freeSlots(0, 3)
	}
}
