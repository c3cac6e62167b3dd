package viewgroup

import (
	"cmp"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// tend has the leader keep the membership: a peer that has no live process and does
// not answer leaves, and while there are too few members another one is made one. One
// thing at a time, so that any two majorities one after the other overlap.
func (m *Member) tend() {
	if !m.Leads() || m.tended > 0 && m.now-m.tended < electionTicks {
		return
	}
	c := m.wantedMembership()
	switch {
	case c == nil:
		return
	case c.GetNodeId() == m.id() && c.GetType() != raftpb.ConfChangeUpdateNode:
		m.handOn()
	default:
		_ = m.node.ProposeConfChange(c) // again, when this one is lost
	}
	m.tended = max(m.now, 1)
}

// id is how the log calls this peer.
func (m *Member) id() uint64 { return uint64(m.config.Self) + 1 }

// handOn has the best of the others that vote lead, if any of them is there: that one will have this peer vote
// no more. Who leads and does so itself stops leading when that is committed, and before the others know that it is: of
// two, the other one still asks for this one's vote then, and does not get it while this one's log goes on with what
// nobody else has.
func (m *Member) handOn() {
	others := slices.DeleteFunc(slices.Clone(m.conf.GetVoters()), func(id uint64) bool {
		return id == m.id() || !m.isThere(id) || !m.follows(id)
	})
	if len(others) > 0 {
		m.node.TransferLeader(slices.MinFunc(others, m.byRank))
	}
}

// submitter is how the log calls the submitter's peer.
const submitter = 1

// leadTicks is how long another one leads before the submitter's peer does again.
const leadTicks = 2 * electionTicks

// handBack has the submitter's peer lead again once it is back: it has the control
// streams, so it knows first who is gone, and who leads is not left in doubt for the
// time of an election when some other member is lost.
func (m *Member) handBack() {
	if m.Leads() && m.config.Self != submitter-1 && m.now-m.followed > leadTicks && m.now-m.heard[submitter] <= heartbeatTicks {
		m.followed = m.now
		m.node.TransferLeader(submitter)
	}
}

// wantedMembership returns the next step to the membership that should be, or nil: who
// is gone leaves; who has come is taken in; the submitter's peer that is cut off votes no
// more until it is back; there are as many members as Members says, the new ones of those
// that have shown that they follow the log, and those that are wanted most, if nobody is
// silent, since for a moment there is one more; and of two, one alone goes on being one,
// because two would both be needed.
func (m *Member) wantedMembership() *raftpb.ConfChange {
	working := m.working()
	voters, learners := m.conf.GetVoters(), m.conf.GetLearners()
	for _, id := range slices.Concat(voters, learners) {
		if m.gone[id] || !working[int(id)-1] && m.missing(id, silentTicks) {
			return &raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(id)}
		}
	}
	if len(m.newcomers) > 0 {
		return m.introduction(m.newcomers[0])
	}
	if slices.Contains(voters, submitter) && m.missing(submitter, cutOffTicks) {
		return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(submitter))}
	}
	answering := slices.DeleteFunc(slices.Clone(learners), func(id uint64) bool { return m.silent(id, silentTicks) })
	following := slices.DeleteFunc(slices.Clone(answering), func(id uint64) bool { return !m.isThere(id) || !m.follows(id) })
	last := slices.MaxFunc(voters, m.byRank)
	want := func(others []uint64) int { return min(m.config.Members, Members(len(voters)+len(others))) }
	if len(following) > 0 {
		first := slices.MinFunc(following, m.byRank)
		better := m.rank(first) < m.rank(last) && !slices.ContainsFunc(voters, func(id uint64) bool { return m.silent(id, silentTicks) })
		if len(voters) < want(following) || better { // then one of them leaves
			return &raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: new(first)}
		}
	}
	if len(voters) > want(answering) {
		return &raftpb.ConfChange{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(m.leastWanted())}
	}
	return nil
}

// leastWanted returns which of those who vote is to do so no more: one that is not there, since those who are have
// to be a majority of the others, and else the last. Of the submitter's, silence says little.
func (m *Member) leastWanted() uint64 {
	absent := slices.DeleteFunc(slices.Clone(m.conf.GetVoters()), func(id uint64) bool {
		return id == submitter || id == m.id() || m.isThere(id)
	})
	if len(absent) > 0 {
		return slices.MaxFunc(absent, m.byRank)
	}
	return slices.MaxFunc(m.conf.GetVoters(), m.byRank)
}

// rank says how much a peer is wanted as a member, 0 the most: the submitter's, which finds
// those who come; others, this one before them, since it leads; and those whose processes have
// all failed, who are about to leave.
func (m *Member) rank(id uint64) int {
	rank := 4
	for p, peer := range m.config.RunsOn {
		if peer == int(id)-1 && m.view.Has(p) {
			rank = 2
		}
	}
	switch int(id) - 1 {
	case submitter - 1:
		return 0
	case m.config.Self:
		return rank - 1
	}
	return rank
}

// byRank compares two peers: those that are wanted alike come in the order of their numbers.
func (m *Member) byRank(a, b uint64) int {
	return cmp.Or(cmp.Compare(m.rank(a), m.rank(b)), cmp.Compare(a, b))
}

// working returns the peers with live processes, and the submitter's: it has the
// user, and nobody can say of it that it has failed.
func (m *Member) working() map[int]bool {
	working := map[int]bool{0: true}
	for p, peer := range m.config.RunsOn {
		if m.view.Live(p) {
			working[peer] = true
		}
	}
	return working
}

// silentTicks is how long a peer does not answer the leader before it may have to
// leave: longer than the library takes to count anew who does.
const silentTicks = electionTicks + 2*heartbeatTicks

// listen keeps account of who answers, while this peer leads. The library notes it too,
// and forgets it once in electionTicks: so much longer one may be silent.
func (m *Member) listen() {
	if !m.Leads() {
		m.answered = nil
		return
	}
	first := m.answered == nil
	if first {
		m.answered = make(map[uint64]int)
	}
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if first || p.RecentActive {
			m.answered[id] = m.now
		}
	})
	m.touched = max(m.touched, m.majorityHeard())
}

// hear takes note that a peer has answered this one, if it leads.
func (m *Member) hear(id uint64) {
	if m.answered == nil || !m.Leads() {
		return
	}
	m.answered[id] = m.now
	m.touched = max(m.touched, m.majorityHeard())
}

// silent reports whether a peer has not answered this one for so many ticks.
func (m *Member) silent(id uint64, ticks int) bool {
	last, known := m.answered[id]
	return known && m.now-last > ticks
}

// missing reports whether a peer has not answered for so many ticks, and a majority does. Who
// leads and is cut off finds all silent, and what it wants then is agreed on when the cut has
// healed: that one leaves who is there again, and is needed. Of those who are left when others
// answer there is a majority without it.
func (m *Member) missing(id uint64, ticks int) bool {
	return m.Contact() == InTouch && m.silent(id, ticks)
}

// isThere reports whether a peer has just been heard: who is lost must not be made one of
// two who vote, since the other one alone agrees on nothing any more.
func (m *Member) isThere(id uint64) bool { return m.now-m.heard[id] <= 2*heartbeatTicks }

// follows reports whether a peer has shown this one, which leads, that its log is the
// beginning of this one's.
func (m *Member) follows(id uint64) (follows bool) {
	m.node.WithProgress(func(of uint64, _ raft.ProgressType, p tracker.Progress) {
		follows = follows || of == id && p.State == tracker.StateReplicate
	})
	return follows
}

// Silence returns for how many ticks a peer has not answered this one: 0 when it does,
// or this one does not lead, or is not in touch, so that it cannot tell.
func (m *Member) Silence(peer int) int {
	last, known := m.answered[uint64(peer)+1]
	if !known || m.Contact() != InTouch {
		return 0
	}
	return m.now - last
}

// majorityHeard returns when the last of a majority of those who vote was heard, this
// peer among them.
func (m *Member) majorityHeard() int {
	var heard []int
	for _, id := range m.conf.GetVoters() {
		if int(id)-1 == m.config.Self {
			heard = append(heard, m.now)
		} else {
			heard = append(heard, m.heard[id])
		}
	}
	slices.Sort(heard)
	return heard[(len(heard)-1)/2]
}

// reconfigure takes a committed change of the membership.
func (m *Member) reconfigure(out *Output, e *raftpb.Entry) {
	m.tended = 0
	var c raftpb.ConfChange
	if e.GetType() != raftpb.EntryConfChange || proto.Unmarshal(e.GetData(), &c) != nil {
		panic("an entry that no member writes")
	}
	m.conf = m.node.ApplyConfChange(&c)
	if c.GetType() == raftpb.ConfChangeRemoveNode {
		m.former[c.GetNodeId()] = true // no number is given twice
	}
	m.welcome(out, &c)
}
