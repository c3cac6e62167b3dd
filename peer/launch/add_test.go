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
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// addition is a process that is added, and opens a channel to one that was here before, or that one.
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
		l.await(proclink.Bye) // which never comes
	}
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// startAdding starts a job of two ranks and two replicas of which rank 0 has lost the replica of peer 0.
func startAdding(t *testing.T) (j *testJob, after view.View) {
	t.Helper()
	j = newTestbed(t, 2, 3).newJob(t, 2, 2, map[string]string{"in/data": "inputs"}, "add")
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

// adds has a peer add a process, with a slot of its own, and returns what it answers.
func (j *testJob) adds(peer int, p view.Process) *jobpb.Added {
	j.Helper()
	j.links[peer].say(j.addMessage(p, j.reserve(j.peers[peer], 1)))
	return await(j.links[peer], (*jobpb.FromPeer).GetAdded)
}

func dropMessage(p view.Process) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Drop{Drop: &jobpb.Drop{Process: jobpb.FromProcess(p)}}}
}

// freeSlots waits until so many slots of a peer are free.
func (j *testJob) freeSlots(peer, want int) {
	j.Helper()
	slots := j.peers[peer].reservations
	for until := time.After(patience); slots.Snapshot().Free != want; {
		select {
		case <-slots.Changed():
		case <-until:
			j.Fatalf("slots of peer %d: %+v, want %d free", peer, slots.Snapshot(), want)
		}
	}
}

// until waits until something is so at peer 0.
func (j *testJob) until(ok func(*job) bool) {
	j.Helper()
	here := j.hosted(0)
	for begun := time.Now(); !answered(j.T, here, func() bool { return ok(here) }); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			j.Fatal("it does not come to that")
		}
	}
}

// TestProcessIsAddedToAPartThatRuns: it takes a slot of its own and waits until it is in the view; then it has
// channels to the others here, and nothing of it is left after the job (S4).
func TestProcessIsAddedToAPartThatRuns(t *testing.T) {
	j, v := startAdding(t)
	p := view.Process{Replica: 2}
	if a := j.adds(0, p); a.Error != "" || a.Process.View() != p {
		t.Fatalf("added: %v", a)
	}
	j.freeSlots(0, 0)
	i := await(j.links[0], (*jobpb.FromPeer).GetInitialized)
	row := j.member(p, j.peers[0])
	row.Key = i.Key
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
	j.links[0].say(dropMessage(p)) // too late: others have heard of it
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

// TestS4ProcessThatIsLetGoLeavesNothing: whether the submitter says so or another peer has it, its slot is free and
// its folder gone while the job goes on, and the same process may be added anew.
func TestS4ProcessThatIsLetGoLeavesNothing(t *testing.T) {
	j, v := startAdding(t)
	p := view.Process{Replica: 2}
	letGo := map[string]func(){
		"dropped": func() { j.links[0].say(dropMessage(p)) },
		"dropped at once": func() {
			j.links[0].say(dropMessage(p))
		},
		"another peer has it": func() {
			row := j.member(p, j.submitter)
			j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
		},
	}
	for _, how := range []string{"dropped", "dropped at once", "another peer has it"} {
		if how == "dropped at once" {
			j.links[0].say(j.addMessage(p, j.reserve(j.peers[0], 1)))
		} else if a := j.adds(0, p); a.Error != "" {
			t.Fatalf("%s: %v", how, a)
		}
		letGo[how]()
		await(j.links[0], func(m *jobpb.FromPeer) *jobpb.Added {
			if a := m.GetAdded(); a.GetError() != "" {
				return a
			}
			return nil
		})
		j.links[0].kept = nil
		j.freeSlots(0, 1)
		if left, _ := filepath.Glob(filepath.Join(j.peers[0].home, "scratch", "*", p.String())); len(left) > 0 {
			t.Errorf("%s: %v is left", how, left)
		}
	}
	v, _, _ = v.Join(0)
	j.tellView(v)
	j.until(func(here *job) bool { return here.view.Epoch == v.Epoch })
	j.stop()
}

// TestPeerRefusesAProcessThatItCannotAdd, and keeps no slot for it (S4): two replicas of a rank are not on one peer.
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
		t.Errorf("with another's key: %q", a.Error)
	}
	j.stop()
}

// TestS4JobThatEndsWhileAProcessIsAddedLeavesNothing, at whatever point.
func TestS4JobThatEndsWhileAProcessIsAddedLeavesNothing(t *testing.T) {
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
