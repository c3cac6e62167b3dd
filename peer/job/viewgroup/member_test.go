package viewgroup

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestMembersAreOdd(t *testing.T) {
	for peers, want := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5, 100: 5} {
		if got := Members(peers); got != want {
			t.Errorf("%d of %d peers are members, want %d", got, peers, want)
		}
	}
}

func TestAllPeersCommitAChange(t *testing.T) {
	w := newWorld(t, 1, 7)
	w.propose(0, 3, view.Failed)
	n := w.until("all peers have it", w.failed(3, 0, 1, 2, 3, 5, 6))
	if n > electionTicks {
		t.Errorf("the submitter's peer did not lead at once: %d ticks", n)
	}
	w.propose(6, 3, view.Finished) // too late
	w.propose(6, 2, view.Finished)
	w.until("a learner's change is committed", func() bool { return w.members[0].View().Epoch == 3 })
	if got := w.members[0].View().State(view.Process{Rank: 3}); got != view.Failed {
		t.Errorf("a failed process is %v", got)
	}
}

func TestV2OnlyTheMajorityContinues(t *testing.T) {
	for name, minority := range map[string][]int{
		"submitter and one more": {0, 1}, "others": {3, 4}, "submitter alone": {0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 5)
			w.ticks(5)
			var majority []int
			for i := range w.members {
				if slices.Contains(minority, i) {
					w.side[i] = 1
				} else {
					majority = append(majority, i)
				}
			}
			rank := 0 // of the majority: peers without processes that do not answer are removed
			if slices.Contains(minority, 1) {
				rank = 3
			}
			w.propose(minority[0], rank, view.Failed)
			w.propose(majority[0], 1, view.Failed)
			w.until("the majority goes on", w.failed(1, majority...))
			bound := 3*electionTicks + cutOffTicks
			w.ticks(bound)
			for _, i := range minority {
				if m := w.members[i]; m.View().Epoch != 1 || m.Contact() != CutOff {
					t.Errorf("peer %d: epoch %d, contact %v", i, m.View().Epoch, m.Contact())
				}
			}
			for _, i := range majority {
				if w.members[i].Contact() != InTouch {
					t.Errorf("peer %d of the majority is not in touch with it: %v", i, w.state())
				}
			}
			clear(w.side)
			w.until("all agree again", w.failed(rank, 0, 3))
			w.until("all are in touch again", func() bool {
				return !slices.ContainsFunc(w.members, func(m *Member) bool { return m.Contact() != InTouch })
			})
		})
	}
}

// TestSubmitterLeadsAgain checks that the submitter's peer leads again once it is back.
func TestSubmitterLeadsAgain(t *testing.T) {
	w := newWorld(t, 8, 5)
	w.ticks(5)
	w.side[0] = 1
	w.until("another one leads", func() bool {
		return slices.ContainsFunc(w.members[1:], func(m *Member) bool { return m.Leads() }) && !w.members[0].Leads()
	})
	clear(w.side)
	w.until("the submitter's peer leads", func() bool { return w.members[0].Leads() })
	w.propose(3, 2, view.Failed)
	w.until("all agree", w.failed(2, 0, 1, 2, 3, 4))
}

func TestThreeMembersTolerateOneLoss(t *testing.T) {
	for lost := range 3 {
		w := newWorld(t, 3, 3)
		w.ticks(3)
		w.crash(lost)
		left := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == lost })
		w.propose(left[0], 0, view.Failed)
		w.until("the two others agree", w.failed(0, left...))
	}
}

func TestFailedMembersAreReplaced(t *testing.T) {
	const peers = 9
	w := newWorld(t, 4, peers)
	w.ticks(3)
	for lost := 1; lost < peers-1; lost++ {
		w.crash(lost)
		w.propose(0, lost-1, view.Failed)
		w.until("failed", w.failed(lost-1, 0, peers-1))
		w.until("replaced", func() bool {
			conf := w.members[0].conf
			return !slices.Contains(conf.GetVoters(), uint64(lost)+1) && len(conf.GetVoters()) == Members(peers-lost)
		})
	}
}

// TestSuccessiveLossesOfAllMembers loses each member as soon as the view shows the failure of the
// previous one.
func TestSuccessiveLossesOfAllMembers(t *testing.T) {
	for peers := 3; peers < 8; peers++ {
		w := newWorld(t, uint64(peers), peers)
		w.ticks(3)
		for lost := 1; lost < peers; lost++ {
			w.crash(lost)
			w.carry(0, w.members[0].Gone(lost))
			w.propose(0, lost-1, view.Failed)
			w.until("failed", w.failed(lost-1, 0))
		}
	}
}

// votes reports whether exactly these peers vote, according to peer i.
func (w *world) votes(i int, peers ...int) func() bool {
	return func() bool {
		var numbers []int
		for _, id := range w.members[i].conf.GetVoters() {
			numbers = append(numbers, int(id)-1)
		}
		slices.Sort(numbers)
		return slices.Equal(numbers, peers)
	}
}

// TestNewcomersReplaceLostPeers repeatedly loses a peer and adds another, until all but the
// submitter's are newcomers. Then the submitter's peer is cut off, and the newcomers continue.
func TestNewcomersReplaceLostPeers(t *testing.T) {
	w := newWorld(t, 9, 3)
	w.ticks(3)
	here := []int{1, 2}
	for round := range 6 {
		lost := here[len(here)-1] // rank 1 has no other replica at first
		if round > 0 {
			lost = here[0]
		}
		var gone view.Process
		for p, peer := range w.members[0].config.RunsOn {
			if peer == lost {
				gone = p
			}
		}
		w.crash(lost)
		w.carry(0, w.members[0].Gone(lost))
		w.carry(0, w.members[0].Propose(signed(submitterPeer, view.Change{Process: gone, To: view.Failed})))
		here = append(slices.DeleteFunc(here, func(i int) bool { return i == lost }), w.comes(0))
		w.until("the newcomer has joined", func() bool {
			v := w.members[0].View()
			return v.State(gone) == view.Failed && w.members[here[1]].View().Epoch == v.Epoch && len(v.LiveReplicas(0)) == 2
		})
		w.until("the newcomer votes", w.votes(here[0], 0, here[0], here[1]))
	}
	w.side[0] = 1
	w.propose(here[0], 0, view.Finished)
	w.until("the two peers continue", func() bool { return w.members[here[1]].View().State(view.Process{}) != view.Live })
}

// TestLostNewcomerIsRemoved loses a newcomer before its first message. It does not vote, and is
// removed.
func TestLostNewcomerIsRemoved(t *testing.T) {
	for _, told := range []bool{false, true} {
		w := newWorld(t, 10, 3)
		w.ticks(3)
		w.crash(2)
		w.carry(0, w.members[0].Gone(2))
		w.propose(0, 1, view.Failed)
		w.until("failed", w.failed(1, 0, 1))
		number := w.comes(0)
		w.crash(number)
		if told {
			w.carry(0, w.members[0].Gone(number))
		}
		w.propose(1, 1, view.Finished)
		w.until("the process of the newcomer is in the view", func() bool { return len(w.members[1].View().LiveReplicas(0)) == 2 })
		w.ticks(2 * silentTicks)
		if w.members[0].Votes(number) {
			t.Error("a newcomer that has never been heard votes")
		}
		w.carry(0, w.members[0].Propose(signed(submitterPeer, view.Change{Process: view.Process{Replica: 1}, To: view.Failed})))
		w.until("the newcomer has left", func() bool { return !slices.Contains(w.members[0].conf.GetLearners(), uint64(number)+1) })
	}
}

// TestNewcomerWaitsUntilTheSubmitterLeads introduces a peer while another member leads. The peer is
// admitted when the submitter's peer leads again, and no later proposal precedes it.
func TestNewcomerWaitsUntilTheSubmitterLeads(t *testing.T) {
	w := newWorld(t, 11, 3)
	w.ticks(3)
	w.side[0] = 1
	w.until("another one leads", func() bool { return (w.members[1].Leads() || w.members[2].Leads()) && !w.members[0].Leads() })
	clear(w.side)
	number := w.comes(0)
	w.until("the newcomer has joined", func() bool { return w.members[number].View().Epoch == 2 && w.members[2].View().Epoch == 2 })
	if w.members[1].config.RunsOn[view.Process{Replica: 1}] != number {
		t.Error("the peer of the newcomer is not known")
	}
}

// TestPartitionedLeaderRemovesNoPeer cuts off a leader, which finds all peers silent. It must not remove a
// peer for that, because the peer is back and needed when the cut heals.
func TestPartitionedLeaderRemovesNoPeer(t *testing.T) {
	for phase := range electionTicks {
		w := newWorld(t, 12, 3)
		w.propose(0, 0, view.Finished)
		w.until("finished", func() bool { return w.members[0].View().State(view.Process{}) == view.Finished })
		w.ticks(phase)
		w.side[1] = 1
		w.ticks(silentTicks - absentTicks - 2*heartbeatTicks)
		w.crash(2)
		w.ticks(absentTicks + 3*heartbeatTicks)
		clear(w.side)
		w.propose(1, 1, view.Failed)
		w.until("the two remaining peers agree", w.failed(1, 0, 1))
	}
}

// TestLeaderTransfersLeadershipBeforeLosingItsVote uses a group of two in which the submitter's peer does not
// lead. If the leader removed its own vote, there might never be a leader again.
func TestLeaderTransfersLeadershipBeforeLosingItsVote(t *testing.T) {
	w := newWorld(t, 8, 3)
	w.ticks(3)
	w.members[0].node.TransferLeader(2)
	w.until("another one leads", func() bool { return w.members[1].Leads() })
	w.members[1].followed = 1000 // and does not return the leadership before
	w.crash(2)
	w.propose(1, 1, view.Failed)
	w.until("the leader has lost its vote", func() bool { return !w.members[1].Votes(1) })
	if !w.members[0].Leads() {
		t.Errorf("no voter leads: %s", w.state())
	}
}

func TestAbsentMembersLoseTheirVotesFirst(t *testing.T) {
	w := newWorld(t, 9, 7)
	m := w.members[1]
	m.conf.Voters, m.now = []uint64{1, 2, 3, 4, 5}, 100
	for _, c := range []struct {
		there []uint64
		want  uint64
	}{{[]uint64{1, 3, 4, 5}, 5}, {[]uint64{1, 4, 5}, 3}, {[]uint64{3, 4, 5}, 5}, {[]uint64{1}, 5}} {
		clear(m.heard)
		for _, id := range c.there {
			m.heard[id] = m.now
		}
		if got := m.voterToRemove(); got != c.want {
			t.Errorf("with members %v present: %d loses its vote, want %d", c.there, got, c.want)
		}
	}
}

// TestNewVotersKnowWhoVotes checks that a peer does not become a voter before it knows who votes. The others
// might depend on it, and it could not tell what is committed.
func TestNewVotersKnowWhoVotes(t *testing.T) {
	w := withLiar(t, 52, 7)
	m, learner := w.members[liar], 6
	if m.Votes(learner) || len(m.conf.Voters) != 5 {
		t.Fatalf("the members are %v", m.conf)
	}
	m.setConf(&raftpb.ConfState{Voters: m.conf.Voters[:4], Learners: m.conf.Learners})
	if c := m.wantedMembership(); c.GetType() != raftpb.ConfChangeAddNode || c.GetNodeId() != uint64(learner)+1 {
		t.Errorf("peer %d does not become a voter: %v", learner, c)
	}
	m.proofs.knows[learner] = []uint32{1, 2, 3, 5, 7}
	if c := m.wantedMembership(); c != nil {
		t.Errorf("a learner that knows other voters: the leader wants %v", c)
	}
}

// TestSubmitterKeepsItsVote checks that the submitter's peer keeps its vote even if all its processes
// have failed.
func TestSubmitterKeepsItsVote(t *testing.T) {
	w := newWorld(t, 5, 5)
	w.members[0].config.RunsOn[view.Process{}] = 0
	w.propose(0, 0, view.Failed)
	w.until("failed", w.failed(0, 0, 1, 2, 3, 4))
	w.ticks(5 * electionTicks)
	if conf := w.members[2].conf; !slices.Contains(conf.GetVoters(), 1) {
		t.Errorf("members are %v", conf.GetVoters())
	}
}

// TestSubmitterRemainsAfterItsProcessesEnd checks that the end of its processes does not remove the peer.
func TestSubmitterRemainsAfterItsProcessesEnd(t *testing.T) {
	w := newWorld(t, 6, 4)
	w.ticks(3)
	w.carry(0, w.members[0].Gone(0))
	w.propose(0, 1, view.Failed)
	w.until("failed", w.failed(1, 0, 1, 2, 3))
	w.ticks(2 * electionTicks)
	if m := w.members[0]; !m.Leads() || !m.Votes(0) {
		t.Errorf("the submitter's peer has left: %s", w.state())
	}
}

// TestSeveralMembersLeaveAtOnce checks that several members may leave at once, if they answer until they have
// lost their votes.
func TestSeveralMembersLeaveAtOnce(t *testing.T) {
	w := newWorld(t, 7, 4)
	w.ticks(3)
	for _, leaves := range []int{1, 2} {
		w.propose(0, leaves-1, view.Failed)
		w.carry(0, w.members[0].Gone(leaves))
	}
	for _, leaves := range []int{1, 2} {
		w.until("the leaving peer has lost its vote", func() bool { return !w.members[0].Votes(leaves) })
		w.crash(leaves)
	}
	w.propose(0, 2, view.Failed)
	w.until("failed", w.failed(2, 0))
}

// TestKnownPeerAddsAProcess checks that a peer with one more process votes as before, as leader
// or not. It decides about the additional process (V4); other peers do not.
func TestKnownPeerAddsAProcess(t *testing.T) {
	for again := 1; again < 5; again++ {
		w := newWorld(t, 13, 5)
		w.ticks(3)
		if again == 2 { // it leads
			w.side[0] = 1
			w.until("another one leads", func() bool { return !w.members[0].Leads() && w.members[1].Leads() || w.members[2].Leads() })
			clear(w.side)
			w.ticks(3)
		}
		voted := w.members[1].conf.GetVoters()
		rank := again % 4
		_, p, _ := w.members[0].View().Join(rank)
		w.tell(0, invite(Newcomer{Peer: again, ID: idOf(again), Process: p, Row: []byte("row")}))
		everywhere := func(s view.State) func() bool {
			return func() bool {
				return !slices.ContainsFunc(w.members, func(m *Member) bool { return m.View().State(p) != s || m.config.RunsOn[p] != again })
			}
		}
		w.until("its second process has joined", everywhere(view.Live))
		w.ticks(2 * silentTicks)
		if got := w.members[1].conf.GetVoters(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(voted))) {
			t.Errorf("peer %d: %v vote, before it were %v", again, got, voted)
		}
		other := again%4 + 1
		w.carry(other, w.members[other].Propose(signed(other, view.Change{Process: p, To: view.Finished})))
		w.ticks(10)
		if s := w.members[0].View().State(p); s != view.Live {
			t.Errorf("peer %d: the process is %v at another peer's request", again, s)
		}
		w.carry(again, w.members[again].Propose(signed(again, view.Change{Process: p, To: view.Failed})))
		w.until("it has failed at its own peer's request", everywhere(view.Failed))
		if !w.members[0].View().Live(view.Process{Rank: again - 1}) {
			t.Errorf("peer %d: its first process is gone", again)
		}
	}
}

// TestPeerAddsTwoProcessesAtOnce replaces the lost replicas of two ranks by processes on the same
// peer. Neither process delays or excludes the other one.
func TestPeerAddsTwoProcessesAtOnce(t *testing.T) {
	const peer = 3
	w := newWorld(t, 13, 5)
	w.ticks(3)
	_, first, _ := w.members[0].View().Join(0)
	_, second, _ := w.members[0].View().Join(1)
	for _, p := range []view.Process{first, second} {
		w.tell(0, invite(Newcomer{Peer: peer, ID: idOf(peer), Process: p, Row: []byte("row")}))
	}
	w.until("both have joined, at the request of the peer that runs them", func() bool {
		return !slices.ContainsFunc(w.members, func(m *Member) bool {
			return !m.View().Live(first) || !m.View().Live(second) || m.config.RunsOn[first] != peer || m.config.RunsOn[second] != peer
		})
	})
	if left := w.members[0].newcomers; len(left) > 0 {
		t.Errorf("%v are still to come", left)
	}
}
