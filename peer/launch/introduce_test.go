package launch

import (
	"testing"

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
	if r.Error != "" {
		j.Fatal(r.Error)
	}
	return l
}

// proposal returns a proposed change from a submitter that is not in the view group.
func (j *testJob) proposal(c view.Change) *jobpb.ToPeer {
	j.Helper()
	h := j.submitter.Host
	p, err := viewgroup.Sign(h.Peerstore().PrivKey(h.ID()), j.spec.ID, 0, c)
	if err != nil {
		j.Fatal(err)
	}
	m := jobpb.FromChange(c, 0)
	m.Signature = p.Signature
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Propose{Propose: m}}
}

// introduction returns the introduction of a row's peer by such a submitter.
func (j *testJob) introduction(number int, row *jobpb.Member) *jobpb.Introduce {
	j.Helper()
	encoded, err := proto.Marshal(row)
	if err != nil {
		j.Fatal(err)
	}
	h := j.submitter.Host
	n := viewgroup.Newcomer{Peer: number, ID: p2ppeer.ID(row.Peer), Process: row.GetProcess().View(), Row: encoded}
	if err := n.Sign(h.Peerstore().PrivKey(h.ID()), j.spec.ID); err != nil {
		j.Fatal(err)
	}
	return &jobpb.Introduce{Number: uint32(number), Row: encoded, Signature: n.Signature}
}

// TestPeersAdmitRecruitsOfANewSubmitter checks introductions by a submitter that is not in the view
// group. All peers learn from the group that the new process joins, and where it runs. The new peer
// receives all changes from the first view on.
func TestPeersAdmitRecruitsOfANewSubmitter(t *testing.T) {
	t.Parallel()
	bed := newTestbed(t, 3, 1)
	third := bed.peers[2]
	j := bed.newJob(t, 1, 2, nil, "wait").startKept()
	j.begun()
	for k, peer := range j.peers {
		j.links[k] = j.resumeAsNewProcess(peer)
	}
	p := view.Process{Replica: 2}
	late, row := j.joiner(p, third, j.startMessage())
	agree := &jobpb.Agree{First: 3, RunsOn: []uint32{1, 2}, NewProcess: true}
	for _, id := range []string{string(j.submitter.ID()), string(j.peers[0].ID()), string(j.peers[1].ID()), string(third.ID())} {
		agree.Peers = append(agree.Peers, []byte(id))
	}
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Agree{Agree: agree}})
	joins := view.Change{Process: p, To: view.Live}
	for range 2 { // repeated, for peers that may have missed the first one
		for _, l := range []*testLink{j.links[0], j.links[1], late} {
			l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Introduce{Introduce: j.introduction(3, row)}})
			l.say(j.proposal(joins))
		}
	}
	for k, l := range []*testLink{j.links[0], j.links[1], late} {
		m := await(l, (*jobpb.FromPeer).GetAgreed)
		if c, err := m.Change(); err != nil || c != joins || m.Epoch != 2 {
			t.Errorf("peer %d: agreed on %v (%v) in view %d", k, c, err, m.Epoch)
		}
	}
	for k := range j.peers {
		job := j.hosted(k)
		if id := answered(t, job, func() p2ppeer.ID { return job.board.Table().PeerOf[p] }); id != third.ID() {
			t.Errorf("peer %d: the process runs at %q, want the third peer", k, id)
		}
	}
	late.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: j.keys}}})
	j.links, j.peers = append(j.links, late), append(j.peers, third)
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.gone()
}
