package viewgroup

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A voter that ends its part of the job does not fall silent at once. The submitter's peer keeps its vote for
// cutOffTicks when it is silent. If another one of three voters was lost in that time, the others could not commit
// anything. So the voter asks the leader to be replaced, and remains a voter until then:
//
//	voter                                voters, among them the leader
//	  |-- Message.leaves, every 0.3 s ---->|  wantedMembership
//	  |<== a learner gets a vote ==========|
//	  |<== the voter loses its vote =======|  or is removed, if there is no learner and each other voter answers
//	  '-- Left
//
// The claim needs no signature: libp2p authenticates the sender, which speaks for itself only, and each change that
// follows is lawful without it.

const (
	// leaveTicks bounds the time for which a peer that leaves remains a member. It is longer than the others need to
	// remove the vote of a silent submitter, with some elections before that.
	leaveTicks = 3 * cutOffTicks
	// graceTicks is how long a peer that leaves remains without a vote. The leader may be about to promote it. If the
	// leader is lost meanwhile, the next one may not know yet that this peer has lost its vote.
	graceTicks = 2 * electionTicks
	// settleTicks is the time between two changes of the membership while a voter leaves, which is not urgent. All
	// members then know the first change, even if the leader is lost with the second one.
	settleTicks = 2 * heartbeatTicks
)

// Leave reports that this peer is about to leave the job, and that all its processes have ended. It remains a
// member until Left returns true.
func (m *Member) Leave() Output {
	if m.leftAt == 0 {
		m.leftAt, m.votedAt, m.leaves[m.id()] = max(m.now, 1), m.now, m.now
	}
	m.attempt(func() error { m.maintain(); return nil })
	out := m.ready()
	m.sayLeaves(&out)
	return out
}

// Left reports whether a peer that leaves may go: it has had no vote for graceTicks, or its vote is of no use, or its
// time is over. A peer that is cut off stays, since the others may be electing a leader and need its vote.
func (m *Member) Left() bool {
	relieved := m.now-m.votedAt > graceTicks
	return m.leftAt > 0 && (relieved || m.broken != nil || m.now-m.leftAt > leaveTicks || !m.othersWork())
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
	if m.leftAt == 0 {
		return
	}
	if m.Votes(m.config.Self) {
		m.votedAt = m.now
	}
	if m.now%heartbeatTicks != 0 {
		return
	}
	m.sayLeaves(out)
	if m.now-m.leftAt < absentTicks {
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

// noteLeaves records that a peer of the group has told this one that it leaves.
func (m *Member) noteLeaves(from int, msg *Message) {
	if _, admitted := m.config.IDs[from]; admitted && msg.GetLeaves() && !m.config.isSubmitter(from) {
		if id := uint64(from) + 1; !m.leaving(id) {
			m.leaves[id] = m.now
		}
	}
}

// leaving reports whether a peer is about to leave.
func (m *Member) leaving(id uint64) bool {
	_, leaves := m.leaves[id]
	return leaves
}

// stays reports whether a voter that leaves still answers. It is then replaced before it is removed. A voter that lies
// gains no more time from that than others.
func (m *Member) stays(id uint64) bool {
	return m.leaving(id) && m.now-m.leaves[id] <= leaveTicks && m.Votes(int(id)-1) && !m.silent(id, silentTicks)
}

// voterToRelease returns a voter that leaves and may be removed, because all other voters are up to date.
func (m *Member) voterToRelease() (id uint64, ok bool) {
	working := m.livePeers()
	for _, voter := range m.conf.GetVoters() {
		ended := m.isSubmitter() && m.gone[voter] || !working[int(voter)-1]
		if m.leaving(voter) && ended && (id == 0 || m.byRank(voter, id) > 0) {
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
