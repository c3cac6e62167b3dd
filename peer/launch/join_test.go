package launch

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// newcomer joins the job, or is there from the start. It prints what it receives, and opens a channel to
// the other process.
func newcomer() int {
	l := enter(version.Protocol)
	fmt.Printf("%v joins %v in epoch %d live %v heal %v\n", l.self, l.setup.Joining, l.view.Epoch, l.view.Live(l.self), l.setup.Heal)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	if l.self.Replica > 0 {
		to := view.Process{}
		l.say(proclink.Open, func(m *proclink.Message) { m.Process = &to })
		news := l.awaitAll(proclink.Channel, proclink.Accept) // the process that ends first is no longer available to the other
		fmt.Println("there:", news[proclink.Channel].Kind)
		l.say(proclink.Healed, func(m *proclink.Message) { m.Count, m.Bytes = 5, 80 })
	} else {
		news := l.awaitAll(proclink.Update, proclink.Accept)
		v, to := news[proclink.Update].View, *news[proclink.Accept].Process
		l.say(proclink.Open, func(m *proclink.Message) { m.Process = &to })
		fmt.Printf("and back: %s, in epoch %d live %v\n", l.await(proclink.Channel).Kind, v.Epoch, v.Live(to))
	}
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// joiner prepares and starts a joining process, with the settings of start, and returns its row.
func (j *testJob) joiner(p view.Process, at *member, start *jobpb.ToPeer) (*testLink, *jobpb.Member) {
	j.Helper()
	late := j.connect(at)
	m := j.prepareMessage(p.Replica, j.reserve(at, 1))
	m.GetPrepare().Joining = true
	late.say(m)
	if a := await(late, (*jobpb.FromPeer).GetPrepared); a.Error != "" {
		j.Fatal(a.Error)
	}
	row := j.member(p, at)
	m = proto.Clone(start).(*jobpb.ToPeer)
	m.GetStart().Members = append(m.GetStart().Members, row)
	late.say(m)
	if a := await(late, (*jobpb.FromPeer).GetStarted); a.Error != "" {
		j.Fatal(a.Error)
	}
	row.Key = await(late, (*jobpb.FromPeer).GetInitialized).Key
	return late, row
}

// TestProcessJoinsARunningJob checks that a joining process and the others get channels of the best kind,
// once all peers have its row and a view that contains it.
func TestProcessJoinsARunningJob(t *testing.T) {
	bed := newTestbed(t, 2, 1)
	j := bed.newJob(t, 1, 1, nil, "join")
	start := j.startMessage()
	start.GetStart().Heal = true
	j.prepare()
	j.tell(start)
	old := j.links[0]
	await(old, (*jobpb.FromPeer).GetStarted)
	old.processes = 1
	j.awaitInitialized()
	j.begin()

	p := view.Process{Replica: 1}
	late, row := j.joiner(p, bed.peers[1], start)
	v, _, _ := view.New(1, 1).Join(0)
	for _, l := range []*testLink{old, late} {
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}})
	}
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: j.keys}}})
	if h := await(late, (*jobpb.FromPeer).GetHealed); h.Process.View() != p || h.Messages != 5 || h.Bytes != 80 {
		t.Errorf("healed: %v", h)
	}
	late.exited(p)
	old.exited(view.Process{})
	if got, want := old.output(view.Process{}, 1), "0.0 joins false in epoch 1 live true heal true\nand back: tcp, in epoch 2 live true\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	done, _ := v.With(view.Process{}, view.Failed)
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(done)}})
	if got, want := late.output(p, 1), "0.1 joins true in epoch 2 live true heal true\nthere: tcp\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	j.links = append(j.links, late)
	j.peers = bed.peers
	j.stop()
}
