package viewgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Times, in ticks. A tick is TickPeriod at the Service.
const (
	heartbeatTicks = 3
	// electionTicks is how long a member is not heard of before another one wants
	// to lead, and how long a leader goes on that a majority does not answer.
	// Between it and its double each member chooses anew.
	electionTicks = 15
	// absentTicks is how long a peer is not in touch with the majority before it must
	// take the silence of others for its own: less than any failure detector needs
	// to find them silent.
	absentTicks = 10
	// cutOffTicks is how long until it says that it is cut off: time for several
	// elections, and for a cut link that comes back.
	cutOffTicks = 100
)

// A Contact says how a peer stands to the majority of those who vote.
type Contact int

// The contacts.
const (
	InTouch Contact = iota
	Absent          // for a second: who is silent here need not be so elsewhere
	CutOff          // for so long that it has to stop (V2)
)

// MaxPeers bounds those that a job begins with and agrees on views at, and those that come later: who leads sends to
// each, and whoever submits a job may invent peers.
const MaxPeers = 1 << 12

// MaxMembers bounds those that vote. Of five, two can be lost at the same moment.
const MaxMembers = 5

// Members returns how many of the peers of a job, the submitter's among them, vote
// on its views: an odd number, since one more would make a majority no easier to
// have. With one there is nothing to agree on.
func Members(peers int) int { return min(MaxMembers, peers-(peers+1)%2) }

// Config describes a job's group. Its peers are numbered, the submitter's 0, in the
// order in which they are wanted as members.
type Config struct {
	View    view.View            // the job's first
	Peers   int                  // that there are at first
	Members int                  // how many vote at a time
	Self    int                  // Peers or more: it is a Newcomer
	RunsOn  map[view.Process]int // which peer runs which process, at first
	IDs     map[int]p2ppeer.ID   // of the first peers, by number; those of newcomers are in the log
	Verify  Verify               // of signatures
}

// A Member is one peer's part in agreeing on a job's views. It starts no goroutine,
// reads no clock and opens nothing; its owner hands it one event at a time and
// carries out the Output. A Member never forgets the log, which has a bound: a job changes
// its view but a few times for each process.
type Member struct {
	config Config
	store  *raft.MemoryStorage
	node   *raft.RawNode
	conf   *raftpb.ConfState

	view   view.View
	wanted []Proposal      // proposed here and not committed yet
	held   bool            // some of it has not been offered, until the membership is as it should be
	gone   map[uint64]bool // peers that are known to have left the job
	former map[uint64]bool // peers that have been in the group
	logged int             // bytes that the log has taken

	accusers  map[view.Process]map[int]bool // jurors, and others, that have proposed that it fails
	newcomers []Newcomer                    // introduced here and not taken in yet

	now      int            // ticks
	touched  int            // when it was last known to be in touch with the majority
	heard    map[uint64]int // when each of the others was heard last
	leader   uint64         // when wanted was proposed last; 0: none
	proposed int            // when that was
	answered map[uint64]int // while it leads: when each of the others did last
	followed int            // when it was last not the one that leads, or handed that on
	tended   int            // when a new membership was proposed last and is on its way; 0: none is
	broken   error          // a message has broken the core; it takes part no more
}

// A Message goes to, or has come from, another peer's Member.
type Message = raftpb.Message

// A Committed is a change that all peers agree on, and the epoch of the view that it has made. That
// view itself is of the size of the job: who needs it has the one before.
type Committed struct {
	Change Change
	Epoch  uint64
	By     []int // numbers of the peers whose word it is
}

// Output is what follows from an event.
type Output struct {
	Send      []*Message  // each to the peer To - 1
	Came      []Newcomer  // before Committed, and all others too
	Committed []Committed // the last of them has made the Member's View
}

// New returns the part of peer c.Self. All peers of the job must have the same
// Config but for that, those that come later too.
func New(c Config) (*Member, error) {
	if c.Peers > MaxPeers {
		return nil, fmt.Errorf("view group of %d peers, at most %d are taken", c.Peers, MaxPeers)
	}
	if c.Peers < 1 || c.Members < 1 || c.Members > min(c.Peers, MaxMembers) || c.Self < 0 || c.Self >= c.maxPeers() {
		return nil, fmt.Errorf("view group: peer %d of %d, with %d members", c.Self, c.Peers, c.Members)
	}
	for p, peer := range c.RunsOn {
		if peer < 0 || peer >= c.Peers || !c.View.Contains(p) {
			return nil, fmt.Errorf("view group: process %v on peer %d of %d", p, peer, c.Peers)
		}
	}
	runsOn := make(map[view.Process]int) // it grows
	maps.Copy(runsOn, c.RunsOn)
	c.RunsOn, c.IDs = runsOn, maps.Clone(c.IDs)
	if c.IDs == nil || c.Verify == nil {
		return nil, errors.New("view group: without the identities of its peers")
	}
	m := &Member{config: c, view: c.View, store: raft.NewMemoryStorage(), conf: &raftpb.ConfState{}, gone: make(map[uint64]bool), former: make(map[uint64]bool), accusers: make(map[view.Process]map[int]bool), heard: make(map[uint64]int)}
	for id := range uint64(c.Peers) {
		if id < uint64(c.Members) {
			m.conf.Voters = append(m.conf.Voters, id+1)
		} else {
			m.conf.Learners = append(m.conf.Learners, id+1)
		}
	}
	err := m.begin()
	if err != nil {
		return nil, fmt.Errorf("view group: %w", err)
	}
	return m, nil
}

// begin starts the log, with what all peers know: who votes.
func (m *Member) begin() error {
	first := &raftpb.SnapshotMetadata{ConfState: m.conf, Index: new(uint64(1)), Term: new(uint64(1))}
	if err := m.store.ApplySnapshot(&raftpb.Snapshot{Metadata: first}); err != nil {
		return err
	}
	if err := m.store.SetHardState(&raftpb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}); err != nil {
		return err
	}
	var err error
	m.node, err = raft.NewRawNode(&raft.Config{
		ID: uint64(m.config.Self) + 1, Storage: m.store,
		ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		CheckQuorum: true, PreVote: true, StepDownOnRemoval: true,
		MaxSizePerMsg: maxAppend, MaxInflightMsgs: 64, MaxUncommittedEntriesSize: maxUncommitted,
		Logger: silent{},
	})
	if err == nil && m.config.Self == 0 {
		err = m.node.Campaign() // the job begins with the submitter; nobody else need wait
	}
	return err
}

// Bounds, in bytes.
const (
	maxAppend      = 64 << 10 // of the entries in one message
	maxUncommitted = 1 << 20
)

// View returns the latest view that this peer knows to be agreed on.
func (m *Member) View() view.View { return m.view }

// Leads reports whether this peer leads the group.
func (m *Member) Leads() bool { return m.node.BasicStatus().RaftState == raft.StateLeader }

// Votes reports whether a peer votes.
func (m *Member) Votes(peer int) bool { return slices.Contains(m.conf.GetVoters(), uint64(peer)+1) }

// Contact returns how this peer stands to the majority: who leads hears of it, all
// others hear the leader.
func (m *Member) Contact() Contact {
	switch silence := m.now - m.touched; {
	case m.broken != nil || silence > cutOffTicks:
		return CutOff
	case silence > absentTicks:
		return Absent
	}
	return InTouch
}

// Propose asks for a change, in the name of the proposal's author, who may be another peer. It is
// proposed again until it is committed. A proposal that can have no effect now is dropped.
func (m *Member) Propose(p Proposal) Output {
	if m.matters(p) && !slices.ContainsFunc(m.wanted, p.repeats) {
		m.wanted = append(m.wanted, p)
		m.attempt(func() error { m.offer(p); return nil })
	}
	return m.ready()
}

// repeats reports whether p asks for what another proposal of its author asks for.
func (p Proposal) repeats(other Proposal) bool {
	return p.Change == other.Change && p.Author == other.Author
}

// Gone says that another peer has left the job for good, or is about to, as who has its
// control stream knows at once. It is to be a member no more; its processes are another
// matter. Of itself a peer cannot say so.
func (m *Member) Gone(peer int) Output {
	if peer == m.config.Self {
		return Output{}
	}
	m.gone[uint64(peer)+1] = true
	m.newcomers = slices.DeleteFunc(m.newcomers, func(n Newcomer) bool { return n.Peer == peer })
	m.attempt(func() error { m.tend(); return nil })
	return m.ready()
}

// offer proposes a change once. Where there is no leader, or it has no room, the
// change waits for a later tick. A leader first gets the membership into order: so
// whoever sees in the view that a peer has been lost may be lost next.
func (m *Member) offer(p Proposal) {
	if m.holds(p) {
		m.held = true
		return
	}
	_ = m.node.Propose(p.encode())
}

// holds reports whether something has to be in the log before a change of the view.
func (m *Member) holds(p Proposal) bool {
	return m.Leads() && m.wantedMembership() != nil || m.awaits(p.Change.Process)
}

// awaits reports whether p runs on a peer that has been introduced here and not taken in yet.
func (m *Member) awaits(p view.Process) bool {
	return slices.ContainsFunc(m.newcomers, func(n Newcomer) bool { return n.Process == p })
}

// Tick lets a TickPeriod pass.
func (m *Member) Tick() Output {
	m.now++
	m.attempt(func() error { m.node.Tick(); return nil })
	if !m.Leads() {
		m.followed = m.now
	}
	m.listen()
	m.attempt(func() error { m.handBack(); return nil })
	return m.ready()
}

// insist proposes again what is wanted: to a new leader, and after a while, since
// what goes to a leader may be lost.
func (m *Member) insist() {
	leader := m.node.BasicStatus().Lead
	released := m.held && !slices.ContainsFunc(m.wanted, m.holds)
	if leader == m.leader && m.now-m.proposed < electionTicks && !released {
		return
	}
	m.leader, m.proposed, m.held = leader, m.now, false
	for _, p := range m.wanted {
		m.offer(p)
	}
}

// Step takes a message of the peer with number from. A message that no honest peer
// sends is an error, and changes nothing. What a peer says that is in the group no more
// means nothing: it may not know that yet.
func (m *Member) Step(from int, msg *Message) (Output, error) {
	if m.former[uint64(from)+1] {
		return Output{}, nil
	}
	if err := m.acceptable(from, msg); err != nil {
		return Output{}, err
	}
	m.attempt(func() error { return m.node.Step(msg) })
	m.heard[msg.GetFrom()] = m.now
	switch msg.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		if m.node.BasicStatus().Lead == msg.GetFrom() {
			m.touched = m.now
		}
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		m.hear(msg.GetFrom())
	}
	return m.ready(), m.broken
}

// attempt does something with the log. The library panics when the log cannot be what
// it should be, which a member that lies can bring about; this peer is then out of
// the group, and the daemon goes on.
func (m *Member) attempt(do func() error) {
	if m.broken != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			m.broken = fmt.Errorf("view group: %v", p)
		}
	}()
	// Errors are of messages from peers that have been removed, and of proposals
	// that cannot be made now; both are to be ignored.
	_ = do()
}

// ready carries out what the library wants, and what follows from it.
func (m *Member) ready() (out Output) {
	m.attempt(func() error {
		m.insist()
		for m.node.HasReady() {
			r := m.node.Ready()
			if !raft.IsEmptyHardState(r.HardState) {
				_ = m.store.SetHardState(r.HardState) // never fails
			}
			if m.weigh(r.Entries); m.broken != nil {
				return nil
			}
			if err := m.store.Append(r.Entries); err != nil {
				return err
			}
			for _, msg := range r.Messages {
				m.send(&out, msg)
			}
			for _, e := range r.CommittedEntries {
				m.apply(&out, e)
			}
			m.node.Advance(r)
			m.tend()
			m.insist()
		}
		return nil
	})
	return out
}

// send lets a message go out. Snapshots are none that anybody needs: everybody has
// begun with the same. A proposal of another peer, on its way to the leader, goes on
// in this one's name.
func (m *Member) send(out *Output, msg *Message) {
	switch msg.GetType() {
	case raftpb.MsgSnap:
		return
	case raftpb.MsgProp:
		msg.From = new(uint64(m.config.Self) + 1)
	}
	out.Send = append(out.Send, msg)
}

// apply takes a committed entry of the log.
func (m *Member) apply(out *Output, e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal {
		m.reconfigure(out, e)
		return
	}
	p, err := decodeProposal(e.GetData())
	if err != nil {
		return // the empty entry of a new leader; for all peers alike
	}
	m.accept(out, p)
	m.wanted = slices.DeleteFunc(m.wanted, func(w Proposal) bool { return w.repeats(p) || !m.matters(w) })
}

var errForeign = errors.New("a message that no member sends")

// acceptable says whether a message can be an honest peer's.
func (m *Member) acceptable(from int, msg *Message) error {
	if msg.GetFrom() != uint64(from)+1 || msg.GetTo() != uint64(m.config.Self)+1 {
		return fmt.Errorf("%w: from %d to %d", errForeign, msg.GetFrom(), msg.GetTo())
	}
	switch msg.GetType() {
	case raftpb.MsgHeartbeat:
		if last, _ := m.store.LastIndex(); msg.GetCommit() > last {
			return fmt.Errorf("%w: entry %d of %d is committed", errForeign, msg.GetCommit(), last)
		}
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgHeartbeatResp,
		raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgTimeoutNow:
	case raftpb.MsgProp:
		if len(msg.GetEntries()) == 0 {
			return fmt.Errorf("%w: an empty proposal", errForeign)
		}
		if m.logged > m.maxLog()/2 { // what this peer itself has to say still finds room
			return fmt.Errorf("%w: the log has %d bytes", errForeign, m.logged)
		}
		for _, e := range msg.GetEntries() {
			p, err := decodeProposal(e.GetData())
			if err != nil || e.GetType() != raftpb.EntryNormal || m.forged(p) {
				return fmt.Errorf("%w: proposal %.40q", errForeign, e.GetData())
			}
		}
	default:
		return fmt.Errorf("%w: %v", errForeign, msg.GetType())
	}
	return nil
}
