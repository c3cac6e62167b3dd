package viewgroup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// Step handles a message from the peer with number from. A message that no correct peer sends is an error
// and has no effect. Step ignores peers that were removed from the group, since they may not know it yet.
func (m *Member) Step(from int, msg *Message) (Output, error) {
	if m.former[uint64(from)+1] {
		return Output{}, nil
	}
	r, err := m.acceptable(from, msg)
	if err != nil {
		return Output{}, err
	}
	m.noteLeaves(from, msg)
	err = errors.Join(m.receiveSigners(msg.GetSigners()), m.proofs.receiveHeads(msg.GetHeads()))
	m.noteFound()
	if err != nil || r == nil || m.broken != nil {
		out := m.ready()
		if err == nil && m.broken == nil {
			m.answerSubmitter(&out, from, msg)
		}
		return out, err
	}
	if r.GetFrom() != uint64(from)+1 {
		return m.receiveRelayed(msg, r)
	}
	if r.GetType() == raftpb.MsgProp && !m.takesProposal(r) {
		return m.ready(), nil
	}
	in := incoming{from: from, raft: r, msg: msg, status: m.node.BasicStatus(), calm: m.now-m.ledAt < calmTicks}
	in.behind = m.Contact() != InTouch || in.status.Lead == raft.None
	ok, err := m.proofs.justified(in)
	if m.noteFound(); err != nil || !ok {
		return m.ready(), err
	}
	claimed := r.GetCommit()
	if isOfLeader(r) && from != m.proofs.submitter {
		r.Commit = new(min(claimed, m.proofs.committed(r.GetTerm())))
	}
	if !m.accepts(r) || !m.proofs.signsEntries(in) {
		return m.ready(), nil
	}
	out := m.step(from, r)
	m.commitFurther(&out, r, claimed)
	return out, m.broken
}

// answerSubmitter handles a message of the submitter's peer that misses a leader: it asks for the log, or orders this
// peer to be a candidate.
func (m *Member) answerSubmitter(out *Output, from int, msg *Message) {
	switch answer := m.message(from); {
	case m.proofs.receiveOrder(from, msg.GetBallot()):
		m.attempt(func() error {
			return m.node.Step(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: new(uint64(from) + 1), To: new(m.id()), Term: new(m.proofs.term)})
		})
		out.add(m.ready())
	case msg.GetAfter() == 0 || from != m.proofs.submitter:
	case m.mayRelay(from, msg.GetAfter()) && m.proofs.relay(answer, msg.GetAfter()):
		out.Send = append(out.Send, answer)
	default: // this peer has nothing to relay, or does not hear the leader either
		out.add(m.tellTerm(uint32(from)))
	}
}

// mayRelay reports whether to relay the log after an entry to a peer: the submitter's. A new process of the
// submitter gets committed entries of a peer that is cut off too. That may be the last peer that is left after the
// end of all processes.
func (m *Member) mayRelay(to int, after uint64) bool {
	_, admitted := m.config.IDs[to]
	return to == m.proofs.submitter && (m.Contact() == InTouch || !admitted && m.proofs.commit > after)
}

// commitFurther commits what the heads show to be committed now that the entries in a message of the leader are
// in the log.
func (m *Member) commitFurther(out *Output, r *raftpb.Message, claimed uint64) {
	if !isOfLeader(r) || r.GetCommit() == claimed || m.node.BasicStatus().Lead != r.GetFrom() {
		return
	}
	if index := min(claimed, m.proofs.committed(r.GetTerm())); index > r.GetCommit() {
		m.attempt(func() error {
			return m.node.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: r.From, To: r.To, Term: r.Term, Commit: &index})
		})
		out.add(m.ready())
	}
}

// calmTicks is the time without a leader, or since the last term began, after which another peer gets a
// pre-vote. It is shorter than the shortest election timeout, since that peer may have noticed earlier.
const calmTicks = electionTicks - 2*heartbeatTicks

// takesProposal reports whether a proposal of another peer goes into the log: it matters, and leaves room for
// this peer's own proposals. The other peer repeats it otherwise.
func (m *Member) takesProposal(r *raftpb.Message) bool {
	p, err := decodeProposal(r.GetEntries()[0].GetData())
	return err == nil && m.matters(p) && m.logged <= m.maxLog()/2
}

// step passes a justified message to the library.
func (m *Member) step(from int, r *raftpb.Message) Output {
	k := m.proofs
	switch r.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		k.requests[from] = r
	case raftpb.MsgPreVoteResp, raftpb.MsgProp:
	default:
		k.terms[from] = max(k.terms[from], r.GetTerm())
	}
	if !(m.Leads() && r.GetTerm() == k.term && onlyTellsTerm(r)) { // the library would take it for an acknowledgement, and then send a snapshot
		m.attempt(func() error { return m.node.Step(r) })
	}
	m.heard[r.GetFrom()] = m.now
	switch r.GetType() {
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		if !onlyTellsTerm(r) {
			k.follows[from] = max(k.follows[from], r.GetTerm())
		}
		m.recordAnswer(r.GetFrom())
	}
	out := m.ready()
	if isOfLeader(r) && m.node.BasicStatus().Lead == r.GetFrom() {
		if m.ledAt = m.now; from == k.submitter || !k.withholds() {
			m.touched = m.now
		}
	}
	return out
}

// onlyTellsTerm reports whether r acknowledges nothing. A peer answers messages of an earlier term with it.
func onlyTellsTerm(r *raftpb.Message) bool {
	return r.GetType() == raftpb.MsgAppResp && !r.GetReject() && r.GetIndex() == 0
}

// add adds the messages and changes of another output.
func (o *Output) add(other Output) {
	o.Send = append(o.Send, other.Send...)
	o.Came = append(o.Came, other.Came...)
	o.Committed = append(o.Committed, other.Committed...)
}

// noteFound ends this peer's part in the group if a peer was found to contradict itself.
func (m *Member) noteFound() {
	if m.broken == nil {
		m.broken = m.proofs.found
	}
}

var errForeign = errors.New("unexpected message")

// acceptable returns the message of the Raft library in msg, or nil if there is none. It returns an error if
// no correct peer sends such a message.
func (m *Member) acceptable(from int, msg *Message) (*raftpb.Message, error) {
	if int(msg.GetFrom()) != from || int(msg.GetTo()) != m.config.Self {
		return nil, fmt.Errorf("%w: from %d to %d", errForeign, msg.GetFrom(), msg.GetTo())
	}
	if len(msg.GetRaft()) == 0 {
		return nil, nil
	}
	r := &raftpb.Message{}
	if err := proto.Unmarshal(msg.GetRaft(), r); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	return r, m.acceptableRaft(from, r)
}

// acceptableRaft returns an error if no correct peer sends such a message of the Raft library.
func (m *Member) acceptableRaft(from int, msg *raftpb.Message) error {
	relayed := m.isSubmitter() && msg.GetType() == raftpb.MsgApp && msg.GetFrom() != m.id() // see relay
	if msg.GetFrom() != uint64(from)+1 && !relayed || msg.GetTo() != uint64(m.config.Self)+1 {
		return fmt.Errorf("%w: from %d to %d", errForeign, msg.GetFrom(), msg.GetTo())
	}
	if isLocal := msg.GetTerm() == 0; isLocal != (msg.GetType() == raftpb.MsgProp) {
		return fmt.Errorf("%w: %v in term %d", errForeign, msg.GetType(), msg.GetTerm())
	}
	switch msg.GetType() {
	case raftpb.MsgHeartbeat:
		if last, _ := m.store.LastIndex(); msg.GetCommit() > last {
			return fmt.Errorf("%w: entry %d of %d is committed", errForeign, msg.GetCommit(), last)
		}
	case raftpb.MsgApp:
		return checkEntries(msg)
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp,
		raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgTimeoutNow:
	case raftpb.MsgProp:
		if len(msg.GetEntries()) != 1 {
			return fmt.Errorf("%w: %d proposals at once", errForeign, len(msg.GetEntries()))
		}
		e := msg.GetEntries()[0]
		if p, err := decodeProposal(e.GetData()); err != nil || e.GetType() != raftpb.EntryNormal || m.forged(p) {
			return fmt.Errorf("%w: proposal %.40q", errForeign, e.GetData())
		}
	default:
		return fmt.Errorf("%w: %v", errForeign, msg.GetType())
	}
	return nil
}

// checkEntries returns an error if the entries in msg do not follow each other.
func checkEntries(msg *raftpb.Message) error {
	index, term := msg.GetIndex(), msg.GetLogTerm()
	for _, e := range msg.GetEntries() {
		if index++; e.GetIndex() != index || e.GetTerm() < term || e.GetTerm() > msg.GetTerm() {
			return fmt.Errorf("%w: entry %d of term %d after entry %d of term %d", errForeign, e.GetIndex(), e.GetTerm(), index-1, term)
		}
		term = e.GetTerm()
	}
	return nil
}

// receiveRelayed handles entries of the leader that another peer has relayed to the submitter's peer. It then
// takes the leadership if it can: it is the preferred leader, and the present one does not answer it.
func (m *Member) receiveRelayed(msg *Message, r *raftpb.Message) (Output, error) {
	k := m.proofs
	if !m.missesLeader() {
		return m.ready(), nil
	}
	m.heard[uint64(msg.GetFrom())+1] = m.now
	if r.GetTerm() < k.term {
		return m.tellTerm(msg.GetFrom()), nil
	}
	if before, ok := k.log.at(r.GetIndex()); !ok || !bytes.Equal(before, msg.GetPrevious()) {
		return m.ready(), nil // one of the two logs is that of an earlier leader that has lied
	}
	last, hash := k.relayedHead(r)
	head := k.signedByLeader(msg, r)
	if head == nil {
		return m.ready(), fmt.Errorf("%w: relayed entries that the leader has not signed", errUnjustified)
	}
	// The library takes every message for a sign of life of the leader, and would give no other peer a vote.
	known, ok := k.log.at(last)
	news := r.GetTerm() > k.term || !ok || !bytes.Equal(known, hash)
	in := incoming{from: int(r.GetFrom()) - 1, raft: r, msg: msg, status: m.node.BasicStatus(), behind: true}
	ok, err := k.justified(in)
	if m.noteFound(); err != nil || !ok {
		return m.ready(), err
	}
	k.keep(head)
	claimed, before := r.GetCommit(), len(k.log)
	r.Commit = new(min(claimed, k.committed(r.GetTerm())))
	out := m.ready()
	for _, part := range inParts(r) {
		if !m.accepts(part) {
			break
		}
		if news || part.GetCommit() > in.status.GetCommit() {
			m.attempt(func() error { return m.node.Step(part) })
			out.add(m.ready())
		}
	}
	m.commitFurther(&out, r, claimed)
	heard := m.majorityHeard(m.conf.GetVoters(), m.id())
	m.touched = max(m.touched, heard)
	if m.Votes(m.config.Self) && m.now-heard <= 2*heartbeatTicks && len(k.log) == before && m.now-m.claimedAt > leadTicks {
		m.claimedAt = m.now
		m.attempt(func() error {
			return m.node.Step(&raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: r.From, To: r.To, Term: new(k.term)})
		})
		out.add(m.ready())
	}
	return out, m.broken
}

// missesLeader reports whether this is the submitter's peer and has not heard a leader for a while, or has heard
// one that withholds entries.
func (m *Member) missesLeader() bool {
	return m.isSubmitter() && !m.Leads() && m.now-min(m.ledAt, m.touched) > absentTicks
}

// orderElection makes the submitter's peer order a voter to be a candidate, one after the other, if it has heard a
// majority but not the leader for long. The leader may lie: it may have taken this peer's vote, not have admitted its
// new process, or not sign what others could relay.
func (m *Member) orderElection(out *Output) {
	if heard := m.now - m.majorityHeard(m.conf.GetVoters(), m.id()); !m.missesLeader() || heard > 2*heartbeatTicks {
		m.settledAt = m.now
	}
	if m.now-max(m.settledAt, m.claimedAt) <= orderTicks {
		return
	}
	k := m.proofs
	var candidates []uint64
	for _, id := range m.conf.GetVoters() {
		if id != m.id() && m.heardRecently(id) && int(id)-1 != k.leader {
			candidates = append(candidates, id)
		}
	}
	if len(candidates) == 0 {
		return
	}
	m.claimedAt = m.now
	msg := m.message(int(candidates[m.now/leadTicks%len(candidates)]) - 1)
	msg.Ballot = k.sign(&Statement{Kind: pb.Statement_ORDER, Term: k.term + 1, Candidate: msg.GetTo()})
	out.Send = append(out.Send, msg)
}

// orderTicks is the time with a majority and without a leader after which the submitter's peer orders an election.
// Elections without its order are usually over by then.
const orderTicks = 4 * electionTicks

// tellTerm tells a peer in an earlier term the present one: it has not received the request for its vote.
func (m *Member) tellTerm(to uint32) Output {
	out := m.ready()
	m.send(&out, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(m.id()), To: new(uint64(to) + 1), Term: new(m.proofs.term)})
	return out
}

// receiveSigners records the identities of newcomers that are not in the log here yet, for their statements.
// The submitter has signed them.
func (m *Member) receiveSigners(signers []*pb.Newcomer) error {
	if len(signers) > maxSigners {
		return fmt.Errorf("%w: %d newcomers", errUnjustified, len(signers))
	}
	for _, s := range signers {
		number := int(s.GetNumber())
		if _, known := m.proofs.identity(number); known {
			continue
		}
		n := Newcomer{Peer: number, ID: p2ppeer.ID(s.GetPeer()), Process: processIn(s)}
		if !m.config.hasRoom(n) || !m.config.Verify(m.config.IDs[submitterPeer], n.statementOn(s.GetRowHash()), s.GetSignature()) {
			return fmt.Errorf("%w: newcomer %d is not invited", errUnjustified, number)
		}
		if n.Process == NoProcess {
			m.recognize(n)
		} else {
			m.config.Told[number] = n.ID
		}
	}
	return nil
}

// accepts reports whether this peer accepts the voterChange in a message of the leader, if there is one that it does not
// have. The change begins the entries, and shows that the previous one is committed. That one is then committed here
// together with r.
func (m *Member) accepts(r *raftpb.Message) bool {
	isNew := func(e *raftpb.Entry) bool {
		return voterChangeIn(e) != nil && m.proofs.termAt(e.GetIndex()) != e.GetTerm()
	}
	entries := r.GetEntries()
	if !slices.ContainsFunc(entries, isNew) || !m.proofs.continues(r) { // the library refuses entries that do not follow this peer's log
		return true
	}
	if !isNew(entries[0]) || slices.ContainsFunc(entries[1:], isNew) {
		return false
	}
	last := m.lastVoterChange(entries[0].GetIndex())
	if last.index == 0 {
		return true
	}
	told := contextOf(voterChangeIn(entries[0]))
	if m.receiveSigners(told.GetSigners()) != nil || !last.isSettled(m.proofs, told.GetSettled()) {
		return false
	}
	r.Commit = new(max(r.GetCommit(), last.index))
	return true
}

// noteLeaves records that a peer of the group has told this one that it leaves.
func (m *Member) noteLeaves(from int, msg *Message) {
	if _, admitted := m.config.IDs[from]; admitted && msg.GetLeaves() && !m.config.isSubmitter(from) {
		m.departures.note(uint64(from)+1, m.now)
	}
}
