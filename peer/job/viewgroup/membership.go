package viewgroup

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// maintain makes the leader maintain the membership. A peer that has no live process and does not answer is
// removed. If there are too few members, another peer becomes one. Only one change is pending at a time, so
// any two consecutive majorities overlap.
func (m *Member) maintain() {
	if !m.Leads() || m.tended > 0 && m.now-m.tended < electionTicks {
		return
	}
	c := m.wantedMembership()
	switch {
	case c == nil:
		return
	case c.GetNodeId() == m.id() && c.GetType() != raftpb.ConfChangeUpdateNode:
		m.transferLeadership()
	case !m.certify(c): // a new leader has to commit an entry first
		return
	default:
		_ = m.node.ProposeConfChange(c) // repeated if it is lost
		m.tended = max(m.now, 1)
	}
}

// certify adds to a change that this peer, which leads, proposes what shows that the last voterChange is committed. It
// reports false while this peer cannot show that.
func (m *Member) certify(c *raftpb.ConfChange) bool {
	if isIntroduction(c) {
		return true
	}
	index, _ := m.store.LastIndex()
	last := m.lastVoterChange(index + 1)
	if last.index == 0 {
		return true
	}
	told := contextOf(c)
	if last.index <= m.node.BasicStatus().Applied {
		told.Settled = last.proof(m.proofs)
	}
	if told.Settled == nil {
		return false
	}
	told.Signers = m.proofs.newcomersIn(told.Settled)
	c.Context = encode(told)
	return true
}

// lastVoterChange returns the last voterChange in the log before an index.
func (m *Member) lastVoterChange(before uint64) voterChange {
	applied := m.node.BasicStatus().Applied
	entries, _ := m.store.Entries(applied+1, max(before, applied+1), math.MaxUint64)
	for _, e := range slices.Backward(entries) {
		if c := voterChangeIn(e); c != nil {
			return newVoterChange(m.proofs.voters, e.GetIndex(), c)
		}
	}
	return m.proofs.changed
}

// id returns the number of this peer in the log.
func (m *Member) id() uint64 { return uint64(m.config.Self) + 1 }

// transferLeadership transfers the leadership to the preferred voter that is reachable, which then takes
// this peer's vote away. A leader that removed itself would step down when the change is committed, before
// the others know of it. In a group of two, the other one would still need this peer's vote. It would not
// get it while this peer's log has entries that the other one lacks.
func (m *Member) transferLeadership() {
	others := slices.DeleteFunc(slices.Clone(m.conf.GetVoters()), func(id uint64) bool {
		return id == m.id() || !m.upToDate(id) || !m.follows(id)
	})
	if len(others) > 0 {
		m.node.TransferLeader(slices.MinFunc(others, m.byRank))
		m.tended = max(m.now, 1)
	}
}

// leadTicks is the time for which another peer leads before the submitter's peer leads again.
const leadTicks = 2 * electionTicks

// returnLeadership returns the leadership to the submitter's peer when that is back. The submitter's peer
// has the control streams, so it notices first that a peer is lost. If it leads, the loss of another member
// also requires no election.
func (m *Member) returnLeadership() {
	submitter := uint64(m.proofs.submitter) + 1
	if m.Leads() && !m.isSubmitter() && m.now-m.followed > leadTicks && m.now-m.heard[submitter] <= heartbeatTicks {
		m.followed = m.now
		m.node.TransferLeader(submitter)
	}
}

// wantedMembership returns the next change towards the wanted membership, or nil. The rules, in order:
//
//   - A peer that has left the job is removed. A peer without live processes is removed if it does not answer, or if
//     it has an earlier number of the submitter's peer.
//   - A newcomer is admitted.
//   - The submitter's peer loses its vote while it is cut off.
//   - The number of voters is that of Members. New voters must follow the log and know who votes, and are chosen by rank. A
//     better one replaces a voter only if no voter is silent, because there is one voter more for a moment.
//   - Of two voters, only one keeps its vote, because a group of two needs both.
//   - A voter that leaves is removed if there is no learner to replace it.
func (m *Member) wantedMembership() *raftpb.ConfChange {
	voters, learners := m.conf.GetVoters(), m.conf.GetLearners()
	if m.now-m.changedAt < settleTicks && m.departures.anyInTime(m.now) {
		return nil
	}
	working := m.livePeers()
	for _, id := range slices.Concat(voters, learners) {
		ended := !working[int(id)-1]
		mayGo := (m.isSubmitter() || ended) && !m.stays(id) // see lawful
		if m.gone[id] && mayGo || ended && (m.isReplaced(id) || m.missing(id, silentTicks)) {
			return m.removalOf(id)
		}
	}
	if len(m.newcomers) > 0 {
		return m.config.introduction(m.newcomers[0])
	}
	if submitter := uint64(m.lastSubmitter()) + 1; slices.Contains(voters, submitter) && m.missing(submitter, cutOffTicks) {
		return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: &submitter}
	}
	answering := slices.DeleteFunc(slices.Clone(learners), func(id uint64) bool { return m.departures.include(id) || m.silent(id, silentTicks) })
	following := slices.DeleteFunc(slices.Clone(answering), func(id uint64) bool {
		return !m.heardRecently(id) || !m.follows(id) || !m.proofs.mayVote(int(id)-1) || m.replaces(id)
	})
	last := slices.MaxFunc(voters, m.byRank)
	want := func(others []uint64) int { return min(m.config.Members, Members(len(voters)+len(others))) }
	if len(following) > 0 {
		first := slices.MinFunc(following, m.byRank)
		better := m.rank(first) < m.rank(last) && len(voters) <= m.config.Members && !slices.ContainsFunc(voters, func(id uint64) bool { return m.silent(id, silentTicks) })
		if len(voters) < want(following) || better { // in the second case another one loses its vote
			return &raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: new(first)}
		}
	}
	if len(voters) > want(answering) {
		return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(m.voterToRemove())}
	}
	if id, ok := m.voterToRelease(); ok && len(answering) == 0 {
		return m.removalOf(id)
	}
	return nil
}

// removalOf returns the change that removes a peer.
func (m *Member) removalOf(id uint64) *raftpb.ConfChange {
	c := &raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(id)}
	if m.isSubmitter() {
		c.Context = m.config.removalContext(int(id) - 1)
	}
	return c
}

// voterToRelease returns a voter that leaves and may be removed, because all other voters are up to date.
func (m *Member) voterToRelease() (id uint64, ok bool) {
	working := m.livePeers()
	for _, voter := range m.conf.GetVoters() {
		ended := m.isSubmitter() && m.gone[voter] || !working[int(voter)-1]
		if m.departures.include(voter) && ended && (id == 0 || m.byRank(voter, id) > 0) {
			id = voter
		}
	}
	behind := slices.ContainsFunc(m.conf.GetVoters(), func(other uint64) bool { return other != id && !m.upToDate(other) })
	return id, id != 0 && len(m.conf.GetVoters()) > 1 && !behind
}

// upToDate reports whether a peer was heard recently, and knows who votes. Otherwise it might soon lead with the vote of
// a peer that was removed and does not know it, and the present voters would not follow it. Each peer believes the
// submitter's peer at once who votes.
func (m *Member) upToDate(id uint64) bool {
	knows := m.isSubmitter() || slices.Equal(m.proofs.knows[int(id)-1], m.proofs.voters)
	return id == m.id() || m.heardRecently(id) && knows
}

// stays reports whether a voter that leaves still answers. It is then replaced before it is removed.
func (m *Member) stays(id uint64) bool {
	return m.departures.inTime(id, m.now) && m.Votes(int(id)-1) && !m.silent(id, silentTicks)
}

// voterToRemove returns the voter that loses its vote. Voters that do not answer come first, since the others
// must form a majority; otherwise it is the last by rank. The submitter's peer is never taken for silent
// here.
func (m *Member) voterToRemove() uint64 {
	absent := slices.DeleteFunc(slices.Clone(m.conf.GetVoters()), func(id uint64) bool {
		return m.config.isSubmitter(int(id)-1) || id == m.id() || m.heardRecently(id)
	})
	if len(absent) > 0 {
		return slices.MaxFunc(absent, m.byRank)
	}
	return slices.MaxFunc(m.conf.GetVoters(), m.byRank)
}

// rank returns a peer's preference as a member, 0 for the most preferred: the submitter's peer, which finds
// newcomers. Peers with processes in the view follow, then peers whose processes have all failed, since
// they are about to leave, then those that leave already (Leave). Within each group this peer comes first, since
// it leads.
func (m *Member) rank(id uint64) int {
	rank := 4
	for p, peer := range m.config.RunsOn {
		if peer == int(id)-1 && m.view.Has(p) {
			rank = 2
		}
	}
	if m.departures.include(id) {
		rank = 6
	}
	switch int(id) - 1 {
	case m.lastSubmitter():
		return 0
	case m.config.Self:
		return rank - 1
	}
	return rank
}

// byRank compares two peers by rank, then by number.
func (m *Member) byRank(a, b uint64) int {
	return cmp.Or(cmp.Compare(m.rank(a), m.rank(b)), cmp.Compare(a, b))
}

// lastSubmitter returns the last number of the submitter's peer in the log.
func (m *Member) lastSubmitter() (last int) {
	for _, id := range slices.Concat(m.conf.GetVoters(), m.conf.GetLearners()) {
		if m.config.isSubmitter(int(id) - 1) {
			last = max(last, int(id)-1)
		}
	}
	return last
}

// isReplaced reports whether a peer has an earlier number of the submitter's peer.
func (m *Member) isReplaced(id uint64) bool {
	return m.config.isSubmitter(int(id)-1) && int(id)-1 < m.lastSubmitter()
}

// replaces reports whether a peer has the last number of the submitter's peer while an earlier one still votes. It
// gets no vote before that one is removed: with one voter more, of which one is dead, the loss of any other voter
// would stop the group.
func (m *Member) replaces(id uint64) bool {
	return int(id)-1 == m.lastSubmitter() && slices.ContainsFunc(m.conf.GetVoters(), m.isReplaced)
}

// isSubmitter reports whether this peer is the submitter's, with the last number that it has received.
func (m *Member) isSubmitter() bool { return m.config.Self == m.proofs.submitter }

// livePeers returns the numbers of the peers with live processes, and the last one of the submitter's peer. The
// latter always counts, since it serves the user and no failure of it can be committed.
func (m *Member) livePeers() map[int]bool {
	working := map[int]bool{m.lastSubmitter(): true}
	for p, peer := range m.config.RunsOn {
		if m.view.Live(p) {
			working[peer] = true
		}
	}
	return working
}

// silentTicks is the time without an answer to the leader after which a peer may be removed. It is longer
// than the library's period for counting active peers.
const silentTicks = electionTicks + 2*heartbeatTicks

// missing reports whether a peer has not answered for the given number of ticks while a majority does. A
// leader that is cut off finds all peers silent. A change that it proposed then would be committed after
// the cut heals, and remove a peer that is back and needed. If other peers answer, they have a majority
// without the missing one.
func (m *Member) missing(id uint64, ticks int) bool {
	return m.Contact() == InTouch && m.silent(id, ticks)
}

// follows reports whether a peer has confirmed to this leader that its log is a prefix of the leader's log.
func (m *Member) follows(id uint64) (follows bool) {
	m.node.WithProgress(func(of uint64, _ raft.ProgressType, p tracker.Progress) {
		follows = follows || of == id && p.State == tracker.StateReplicate
	})
	return follows
}

// reconfigure applies a committed change of the membership, unless it is not lawful: then a malicious leader
// has written it, and all peers ignore it.
func (m *Member) reconfigure(out *Output, e *raftpb.Entry) {
	if c := voterChangeIn(e); c != nil {
		m.proofs.changed = newVoterChange(m.proofs.voters, e.GetIndex(), c)
	}
	var c raftpb.ConfChange
	if e.GetType() != raftpb.EntryConfChange || proto.Unmarshal(e.GetData(), &c) != nil || !m.lawful(&c) {
		return
	}
	m.tended, m.changedAt = 0, m.now
	m.setConf(m.node.ApplyConfChange(&c))
	if c.GetType() == raftpb.ConfChangeRemoveNode {
		m.former[c.GetNodeId()] = true // no number is reused
		m.newcomers = slices.DeleteFunc(m.newcomers, func(n Newcomer) bool { return uint64(n.Peer)+1 == c.GetNodeId() })
	}
	m.admitNewcomer(out, &c)
}

// lawful reports whether a change of the membership is one that a correct leader may propose, as far as the
// log shows. A malicious leader can therefore not leave the group to itself while others have live processes:
//
//	removed    a peer without live processes, or one that the submitter's peer removes
//	added      a newcomer that the submitter has signed, with a process that no other peer has
//	promoted   a learner, to at most one voter more than Members
//	demoted    the submitter's peer, or a voter too many
func (m *Member) lawful(c *raftpb.ConfChange) bool {
	id, peer := c.GetNodeId(), int(c.GetNodeId())-1
	voters, learns := m.conf.GetVoters(), slices.Contains(m.conf.GetLearners(), id)
	votes := slices.Contains(voters, id)
	switch c.GetType() {
	case raftpb.ConfChangeRemoveNode:
		if !votes && !learns {
			return false
		}
		return !m.livePeers()[peer] || m.config.Verify(m.config.IDs[submitterPeer], removal(peer), contextOf(c).GetRemoval())
	case raftpb.ConfChangeAddNode:
		return learns && len(voters) <= m.config.Members
	case raftpb.ConfChangeAddLearnerNode:
		if votes {
			return !isIntroduction(c) && (m.config.isSubmitter(peer) || len(voters)%2 == 0 || len(voters) > m.config.Members)
		}
		n, err := m.config.newcomerIn(c)
		return err == nil && !learns && !m.former[id] && n.Peer == peer
	case raftpb.ConfChangeUpdateNode:
		_, err := m.config.newcomerIn(c)
		return err == nil
	}
	return false
}

// removal returns the text that the submitter's peer signs to remove a peer, without the name of the job.
func removal(peer int) []byte { return fmt.Appendf(nil, "remove peer %d", peer) }

// removalContext returns the context of the change by which the submitter's peer removes a peer.
func (c Config) removalContext(peer int) []byte {
	return encode(&pb.VoterChange{Removal: c.Sign(removal(peer))})
}

// Introduce asks to admit a peer that the submitter has found, or a new process of the submitter. A peer that
// cannot be admitted, or has been, is ignored.
func (m *Member) Introduce(n Newcomer) Output {
	if m.admissible(n) {
		m.newcomers = append(m.newcomers, n)
		if n.Process == NoProcess {
			m.recognize(n)
		}
	}
	m.attempt(func() error { m.maintain(); return nil })
	return m.ready()
}

// admissible reports whether n can be admitted: n is valid, and no other peer has its number or its process.
func (m *Member) admissible(n Newcomer) bool {
	rows := len(n.Row)
	for _, other := range m.newcomers {
		rows += len(other.Row)
	}
	if !m.config.hasRoom(n) || !m.config.invited(n) || m.gone[uint64(n.Peer)+1] || len(m.newcomers) == m.view.N+view.MaxReplicas || rows > m.maxLog()/4 {
		return false // only a few may be pending at a time, for one rank each
	}
	if _, known := m.config.IDs[n.Peer]; known && !m.config.isMember(n) || m.former[uint64(n.Peer)+1] {
		return false
	}
	if _, runs := m.config.RunsOn[n.Process]; runs {
		return false
	}
	return !slices.ContainsFunc(m.newcomers, n.excludes)
}

// recognize records the number of a new process of the submitter, which the submitter has signed.
func (m *Member) recognize(n Newcomer) {
	m.config.Told[n.Peer] = n.ID
	m.proofs.submitter = max(m.proofs.submitter, n.Peer)
}

// admitNewcomer records the newcomer that c introduces, if there is one.
func (m *Member) admitNewcomer(out *Output, c *raftpb.ConfChange) {
	if c.GetType() != raftpb.ConfChangeAddLearnerNode && c.GetType() != raftpb.ConfChangeUpdateNode {
		return
	}
	n, err := m.config.newcomerIn(c)
	if err != nil || !isIntroduction(c) { // a voter that becomes a learner
		return
	}
	m.config.IDs[n.Peer] = n.ID
	switch {
	case n.Process == NoProcess:
		m.recognize(n)
	case n.Peer == m.proofs.submitter: // a new process has taken a number that the former one had given to this peer
		m.proofs.submitter = m.lastSubmitter()
		fallthrough
	default:
		m.config.RunsOn[n.Process] = n.Peer
	}
	hash := sha256.Sum256(n.Row)
	m.proofs.newcomers[n.Peer] = &pb.Newcomer{
		Number: uint32(n.Peer), Peer: []byte(n.ID), Rank: uint32(n.Process.Rank), Replica: uint32(n.Process.Replica),
		RowHash: hash[:], Signature: n.Signature,
	}
	m.newcomers = slices.DeleteFunc(m.newcomers, n.excludes)
	out.Came = append(out.Came, n)
}

// Leave reports that this peer is about to leave the job, and that all its processes have ended. It remains a
// member until Left returns true.
func (m *Member) Leave() Output {
	m.departures.begin(m.id(), m.now)
	m.attempt(func() error { m.maintain(); return nil })
	out := m.ready()
	m.sayLeaves(&out)
	return out
}

// Left reports whether a peer that leaves may go: it has had no vote for some time, or its vote is of no use, or its
// time is over. A peer that is cut off stays, since the others may be electing a leader and need its vote.
func (m *Member) Left() bool {
	return m.departures.over(m.now) || m.departures.since > 0 && (m.broken != nil || !m.othersWork())
}

// othersWork reports whether another peer has a live process. Otherwise no change of the view is left to agree on.
func (m *Member) othersWork() bool {
	for p, peer := range m.config.RunsOn {
		if peer != m.config.Self && m.view.Live(p) {
			return true
		}
	}
	return false
}

// continueLeaving repeats what a peer that leaves has told, since messages may be lost and leaders change. If the
// processes of this peer are still live in the view after absentTicks, the submitter does not fail them: it is silent.
// This peer then does.
func (m *Member) continueLeaving(out *Output) {
	if m.departures.since == 0 {
		return
	}
	if m.Votes(m.config.Self) {
		m.departures.voted = m.now
	}
	if m.now%heartbeatTicks != 0 {
		return
	}
	m.sayLeaves(out)
	if m.now-m.departures.since < absentTicks {
		return
	}
	for _, p := range m.view.Processes() {
		if m.view.Live(p) && m.config.RunsOn[p] == m.config.Self {
			failed := Proposal{Change: view.Change{Process: p, To: view.Failed}, Author: m.config.Self}
			failed.Signature = m.config.Sign(failed.statement())
			out.add(m.Propose(failed))
		}
	}
}

// sayLeaves tells the voters that this peer leaves. Each of them may lead next, and must not promote a peer that has
// just been demoted for that.
func (m *Member) sayLeaves(out *Output) {
	for _, id := range m.conf.GetVoters() {
		if id != m.id() {
			msg := m.message(int(id) - 1)
			msg.Leaves = true
			out.Send = append(out.Send, msg)
		}
	}
}
