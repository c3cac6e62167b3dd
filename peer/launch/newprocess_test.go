package launch

import (
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// resumeAsNewProcess resumes a part of the job as a new process of the submitter.
func (j *testJob) resumeAsNewProcess(peer *member) *testLink {
	j.Helper()
	l, r := j.resumeWith(j.submitter.Host, peer, &jobpb.Resume{Job: j.spec.ID, NewProcess: true})
	for end := time.Now().Add(eventTimeout); r.Error != ""; { // it has yet to learn the members of the view group
		if time.Now().After(end) {
			j.Fatal(r.Error)
		}
		l, r = j.resumeWith(j.submitter.Host, peer, &jobpb.Resume{Job: j.spec.ID, NewProcess: true})
	}
	return l
}

// A newSubmitter is a new process of the submitter in the view group.
type newSubmitter struct {
	*testJob
	group     *viewgroup.Group
	committed chan viewgroup.Committed
}

// numberOfNew is the number of the new process: the submitter's first process and two peers precede it.
const numberOfNew = 3

// replaceSubmitter makes a new process of the submitter a member of the view group of a job on two peers.
func (j *testJob) replaceSubmitter() *newSubmitter {
	j.Helper()
	s := &newSubmitter{testJob: j, committed: make(chan viewgroup.Committed, 16)}
	n := &viewgroup.Newcomer{Peer: numberOfNew, ID: j.submitter.ID(), Process: viewgroup.NoProcess}
	if err := n.Sign(j.submitter.Peerstore().PrivKey(j.submitter.ID()), j.spec.ID); err != nil {
		j.Fatal(err)
	}
	c := viewgroup.GroupConfig{
		Job: j.spec.ID, First: numberOfNew, Members: viewgroup.Members(numberOfNew), Self: numberOfNew, Introduction: n,
		Peers: []p2ppeer.ID{j.submitter.ID(), j.peers[0].ID(), j.peers[1].ID(), j.submitter.ID()},
		View:  view.New(j.spec.N, j.spec.R), RunsOn: make(map[view.Process]int),
		Committed: func(cs []viewgroup.Committed, _ view.View) {
			for _, c := range cs {
				s.committed <- c
			}
		},
		Came: func(viewgroup.Newcomer) {}, Contact: func(viewgroup.Contact) {},
	}
	for _, p := range c.View.Processes() {
		c.RunsOn[p] = 1 + p.Replica
	}
	var err error
	if s.group, err = j.submitter.views.Join(c); err != nil {
		j.Fatal(err)
	}
	j.Cleanup(s.group.Close)
	return s
}

// next returns the next change of the view.
func (s *newSubmitter) next() view.Change {
	s.Helper()
	select {
	case c := <-s.committed:
		return c.Change
	case <-time.After(eventTimeout):
		s.Fatal("no change of the view")
		return view.Change{}
	}
}

// changes proposes a change and waits until it is committed.
func (s *newSubmitter) changes(c view.Change) {
	s.Helper()
	s.group.Propose(c)
	for s.next() != c {
	}
}

// TestPeersAdmitRecruitsOfANewSubmitter checks introductions by a new process of the submitter. All peers
// learn from the view group that the new process joins, and where it runs. The new peer receives all changes
// from the first view on.
func TestPeersAdmitRecruitsOfANewSubmitter(t *testing.T) {
	t.Parallel()
	bed := newTestbed(t, 3, 1)
	third := bed.peers[2]
	j := bed.newJob(t, 1, 2, nil, "wait").startKept()
	j.begun()
	for k, peer := range j.peers {
		j.links[k] = j.resumeAsNewProcess(peer)
	}
	s := j.replaceSubmitter()
	p := view.Process{Replica: 2}
	late, row := j.joiner(p, third, j.startMessage())
	agree := &jobpb.Agree{First: numberOfNew, RunsOn: []uint32{1, 2}}
	for _, id := range []p2ppeer.ID{j.submitter.ID(), j.peers[0].ID(), j.peers[1].ID(), j.submitter.ID(), third.ID()} {
		agree.Peers = append(agree.Peers, []byte(id))
	}
	s.group.Introduce(j.introduction(numberOfNew+1, row))
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Agree{Agree: agree}})
	s.changes(view.Change{Process: p, To: view.Live})
	j.links, j.peers = append(j.links, late), append(j.peers, third)
	for k := range j.peers {
		job := j.hosted(k)
		for end := time.Now().Add(eventTimeout); !answered(t, job, func() bool { return job.views.current.Live(p) }); {
			if time.Now().After(end) {
				t.Fatalf("peer %d: the process has not joined", k)
			}
		}
		if id := answered(t, job, func() p2ppeer.ID { return job.board.Table().PeerOf[p] }); id != third.ID() {
			t.Errorf("peer %d: the process runs at %q, want the third peer", k, id)
		}
	}
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: j.keys}}})
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.gone()
}

// introduction returns the introduction of a row's peer.
func (j *testJob) introduction(number int, row *jobpb.Member) viewgroup.Newcomer {
	j.Helper()
	encoded, err := proto.Marshal(row)
	if err != nil {
		j.Fatal(err)
	}
	n := viewgroup.Newcomer{Peer: number, ID: p2ppeer.ID(row.Peer), Process: row.GetProcess().View(), Row: encoded}
	if err := n.Sign(j.submitter.Peerstore().PrivKey(j.submitter.ID()), j.spec.ID); err != nil {
		j.Fatal(err)
	}
	return n
}
