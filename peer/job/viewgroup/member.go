package viewgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// Durations in ticks. A Service ticks every TickPeriod.
const (
	heartbeatTicks = 3
	// electionTicks is the silence of the leader after which another member starts an election. It is also
	// the time for which a leader continues without answers from a majority. Each member chooses a random
	// election timeout between electionTicks and twice that.
	electionTicks = 15
	// absentTicks is the time without contact to the majority after which a peer must assume that the
	// silence of others is its own fault. It is shorter than the time that any failure detector needs to
	// find them silent.
	absentTicks = 10
	// cutOffTicks is the time after which the peer reports that it is cut off. It allows for several
	// elections, and for a link that recovers.
	cutOffTicks = 100
)

// maxPeers bounds the first peers of a job with a view group, and also the later ones. The leader sends to
// each of them, and a submitter may invent peers.
const maxPeers = 1 << 12

// maxMembers bounds the voters. Of five, two can be lost at the same moment.
const maxMembers = 5

// Members returns the number of voters for a job with the given number of peers, the submitter's included.
// It is odd, because one more voter would not make the group tolerate more losses. With one peer there is
// nothing to agree on.
func Members(peers int) int { return min(maxMembers, peers-(peers+1)%2) }

// Config describes the group of a job. Its peers are numbered in their order of preference as members; the
// submitter's peer is 0.
type Config struct {
	View    view.View // first view of the job
	Peers   int       // number of peers at first
	Members int       // number of voters at a time
	Self    int       // number of this peer; Peers or more for a Newcomer
	// Submitter is the number of the submitter's peer, as far as this peer knows: 0, or that of a later process.
	Submitter int
	RunsOn    map[view.Process]int // initial peer of each process
	IDs       map[int]p2ppeer.ID   // of the first peers, by number; the log contains those of newcomers
	Told      map[int]p2ppeer.ID   // of later peers, as the submitter has told this one; they count only as signers
	Verify    Verify               // checks signatures
	Sign      Signer               // signs statements of this peer
}

// A Member is one peer's part in the agreement on a job's views. It starts no goroutine, reads no clock and
// opens nothing; its owner passes one event at a time and carries out the Output. A Member keeps the
// complete log, whose size is bounded, since a job changes its view only a few times per process.
type Member struct {
	config Config
	store  *raft.MemoryStorage
	node   *raft.RawNode
	conf   *raftpb.ConfState

	view   view.View
	wanted []Proposal      // proposed here and not committed yet
	held   bool            // true if some of wanted waits for a change of the membership
	gone   map[uint64]bool // peers that have left the job
	former map[uint64]bool // peers that were removed from the group
	logged int             // size of the log in bytes

	accusers  map[view.Process]map[int]bool // peers that have proposed the failure, jurors or not
	newcomers []Newcomer                    // introduced here and not admitted yet

	contacts
	leader     uint64     // leader at the last proposal of wanted; 0 if none
	proposed   int        // time of that proposal
	followed   int        // last time that this peer did not lead, or transferred the leadership
	claimedAt  int        // last time that this peer, the submitter's, took the leadership, or gave it to another one
	settledAt  int        // last time that this peer, the submitter's, heard a leader, or no majority
	tended     int        // time of a pending change of the membership; 0 if none
	departures departures // peers that are about to leave
	changedAt  int        // time of the last change of the membership
	broken     error      // error that ended this peer's part in the group; nil if none
	proofs     *proofs    // what justifies messages
}

// A Message is a message between the Members of two peers, which are named by their numbers.
type Message = pb.Message

// A Committed is a committed change and the epoch of the resulting view. It omits the view itself, whose
// size is that of the job; the caller can apply the change to the previous view.
type Committed struct {
	Change view.Change
	Epoch  uint64
	By     []int // numbers of the authors that the change is based on
}

// Output is the result of an event.
type Output struct {
	Send      []*Message
	Came      []Newcomer  // newcomers; the owner handles them before Send and Committed, which may concern them
	Committed []Committed // the last one leads to the Member's View
}

// New returns the Member of peer c.Self. All peers of the job, newcomers included, must use the same Config
// except for Self.
func New(c Config) (*Member, error) {
	if c.Peers > maxPeers {
		return nil, fmt.Errorf("view group of %d peers, at most %d are allowed", c.Peers, maxPeers)
	}
	if c.Peers < 1 || c.Members < 1 || c.Members > min(c.Peers, maxMembers) || c.Self < 0 || c.Self >= c.maxPeers() {
		return nil, fmt.Errorf("view group: peer %d of %d, with %d members", c.Self, c.Peers, c.Members)
	}
	for p, peer := range c.RunsOn {
		if peer < 0 || peer >= c.Peers || !c.View.Contains(p) {
			return nil, fmt.Errorf("view group: process %v on peer %d of %d", p, peer, c.Peers)
		}
	}
	runsOn := make(map[view.Process]int) // grows with newcomers
	maps.Copy(runsOn, c.RunsOn)
	c.RunsOn, c.IDs, c.Told = runsOn, maps.Clone(c.IDs), maps.Clone(c.Told)
	if c.Told == nil {
		c.Told = make(map[int]p2ppeer.ID)
	}
	if c.IDs == nil || c.Verify == nil || c.Sign == nil {
		return nil, errors.New("view group: without the identities of its peers")
	}
	m := &Member{config: c, view: c.View, store: raft.NewMemoryStorage(), conf: &raftpb.ConfState{}, gone: make(map[uint64]bool), former: make(map[uint64]bool), departures: departures{said: make(map[uint64]int)}, accusers: make(map[view.Process]map[int]bool), contacts: contacts{heard: make(map[uint64]int)}, claimedAt: -leadTicks - 1}
	for id := range uint64(c.Peers) {
		if id < uint64(c.Members) {
			m.conf.Voters = append(m.conf.Voters, id+1)
		} else {
			m.conf.Learners = append(m.conf.Learners, id+1)
		}
	}
	m.proofs = newProofs(m.config, m.store)
	if m.isSubmitter() && c.Self >= c.Peers { // it has not heard the others: time 0 is past
		m.now, m.settledAt = absentTicks+1, absentTicks+1
	}
	m.setConf(m.conf)
	err := m.begin()
	if err != nil {
		return nil, fmt.Errorf("view group: %w", err)
	}
	return m, nil
}

// setConf records the voters and learners.
func (m *Member) setConf(conf *raftpb.ConfState) {
	m.conf = conf
	var voters []uint32
	for _, id := range conf.GetVoters() {
		voters = append(voters, uint32(id)-1)
	}
	slices.Sort(voters)
	m.proofs.setVoters(voters)
}

// begin initializes the log with the voters, which all peers know.
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
		err = m.node.Campaign() // the submitter's peer leads first, without waiting for an election timeout
	}
	return err
}

// Bounds in bytes.
const (
	maxAppend      = 64 << 10 // entries in one message
	maxUncommitted = 1 << 20
)

// View returns the latest committed view that this peer knows.
func (m *Member) View() view.View { return m.view }

// Leads reports whether this peer leads the group.
func (m *Member) Leads() bool { return m.node.BasicStatus().RaftState == raft.StateLeader }

// Votes reports whether a peer votes.
func (m *Member) Votes(peer int) bool { return slices.Contains(m.conf.GetVoters(), uint64(peer)+1) }

// Contact returns this peer's contact with the majority. A leader hears the majority; all others hear the
// leader.
func (m *Member) Contact() Contact {
	if m.broken != nil {
		return CutOff
	}
	return m.contact()
}

// Err returns the error that has ended this peer's part in the group, or nil. It names another peer that has
// told different peers different views.
func (m *Member) Err() error { return m.broken }

// Silence returns the number of ticks for which a peer has not answered this one. It is 0 if the peer
// answers, or if this peer cannot tell, because it does not lead or is not in touch.
func (m *Member) Silence(peer int) int {
	last, known := m.answered[uint64(peer)+1]
	if !known || m.Contact() != InTouch {
		return 0
	}
	return m.now - last
}

// Propose proposes a change on behalf of the proposal's author, which may be another peer. The Member
// repeats the proposal until it is committed, and drops one that can have no effect now.
func (m *Member) Propose(p Proposal) Output {
	if m.matters(p) && !slices.ContainsFunc(m.wanted, p.repeats) {
		m.wanted = append(m.wanted, p)
		m.attempt(func() error { m.offer(p); return nil })
	}
	return m.ready()
}

// repeats reports whether p asks for the same change as another proposal of its author.
func (p Proposal) repeats(other Proposal) bool {
	return p.Change == other.Change && p.Author == other.Author
}

// Gone reports that another peer has left the job permanently, or is about to. A peer that holds its
// control stream knows at once. The Member removes the peer from the group; the peer's processes need their
// own proposals. A peer cannot report itself.
func (m *Member) Gone(peer int) Output {
	if peer == m.config.Self {
		return Output{}
	}
	m.gone[uint64(peer)+1] = true
	m.newcomers = slices.DeleteFunc(m.newcomers, func(n Newcomer) bool { return n.Peer == peer })
	m.attempt(func() error { m.maintain(); return nil })
	return m.ready()
}

// offer proposes a change once. If there is no leader, or the leader has no room, the change waits for a
// later tick. A leader first corrects the membership. Once a view shows the loss of a peer, the group
// therefore tolerates the next loss.
func (m *Member) offer(p Proposal) {
	if m.holds(p) {
		m.held = true
		return
	}
	_ = m.node.Propose(p.encode())
}

// holds reports whether another entry must precede the change in the log.
func (m *Member) holds(p Proposal) bool {
	return m.Leads() && m.wantedMembership() != nil || m.awaits(p.Change.Process)
}

// awaits reports whether p runs on a peer that was introduced here and is not admitted yet.
func (m *Member) awaits(p view.Process) bool {
	return slices.ContainsFunc(m.newcomers, func(n Newcomer) bool { return n.Process == p })
}

// Tick advances the clock by one tick.
func (m *Member) Tick() Output {
	m.now++
	m.attempt(func() error { m.node.Tick(); return nil })
	if !m.Leads() {
		m.followed = m.now
	}
	m.recordAnswers()
	m.attempt(func() error { m.returnLeadership(); return nil })
	out := m.ready()
	m.attempt(func() error { m.compareLogs(&out); m.askForLog(&out); m.orderElection(&out); return nil })
	m.continueLeaving(&out)
	return out
}

// recordAnswers records which peers answer, while this peer leads. The library records it too, but resets its
// record every electionTicks, so a silent peer is noticed that much later.
func (m *Member) recordAnswers() {
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
	m.touched = max(m.touched, m.majorityHeard(m.conf.GetVoters(), m.id()))
}

// recordAnswer records that a peer has answered this one, if this one leads.
func (m *Member) recordAnswer(id uint64) {
	if m.answered == nil || !m.Leads() {
		return
	}
	m.answered[id] = m.now
	m.touched = max(m.touched, m.majorityHeard(m.conf.GetVoters(), m.id()))
}

// repeatProposals repeats the pending proposals to a new leader, and also after a while, since messages to
// a leader may be lost.
func (m *Member) repeatProposals() {
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

// attempt calls do, which uses the log. The library panics if the log is inconsistent, and a malicious
// member can cause that. In this case the peer leaves the group, and the daemon continues.
func (m *Member) attempt(do func() error) {
	if m.broken != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			m.broken = fmt.Errorf("view group: %v", p)
		}
	}()
	// Errors concern messages from removed peers, and proposals that are not possible now. Both are
	// ignored.
	_ = do()
}

// ready carries out the requests of the library, and their consequences.
func (m *Member) ready() (out Output) {
	m.attempt(func() error {
		m.repeatProposals()
		for m.node.HasReady() {
			if m.proofs.noteTerm(m.node.BasicStatus()) {
				m.ledAt = m.now
			}
			r := m.node.Ready()
			if !raft.IsEmptyHardState(r.HardState) {
				_ = m.store.SetHardState(r.HardState) // never fails
			}
			if m.countLog(r.Entries); m.broken != nil {
				return nil
			}
			if err := m.store.Append(r.Entries); err != nil {
				return err
			}
			m.proofs.log = m.proofs.log.append(r.Entries)
			m.proofs.attest()
			for _, msg := range r.Messages {
				m.send(&out, msg)
			}
			for _, e := range r.CommittedEntries {
				m.apply(&out, e)
			}
			m.node.Advance(r)
			m.maintain()
			m.repeatProposals()
		}
		return nil
	})
	m.noteFound()
	if heads := m.proofs.takeConflict(); heads != nil {
		m.sendHeads(&out, heads, func(int) bool { return true })
	}
	return out
}

// send adds a message to out, with what justifies it. It drops snapshots, which no peer needs because all
// start with the same state. It forwards another peer's proposal to the leader in this peer's name.
func (m *Member) send(out *Output, r *raftpb.Message) {
	switch r.GetType() {
	case raftpb.MsgSnap:
		return
	case raftpb.MsgProp:
		r.From = new(uint64(m.config.Self) + 1)
	}
	for _, part := range inParts(r) {
		b, err := proto.Marshal(part)
		if err != nil {
			panic(err) // the library's messages have no text
		}
		msg := m.message(int(r.GetTo()) - 1)
		msg.Raft = b
		m.proofs.justify(msg, part)
		out.Send = append(out.Send, msg)
	}
}

// message returns an empty message from this peer to another one.
func (m *Member) message(to int) *Message {
	return &Message{From: uint32(m.config.Self), To: uint32(to)}
}

// compareLogs sends the heads that voters compare to the other voters and the submitter's peer, now and then.
func (m *Member) compareLogs(out *Output) {
	if m.now%heartbeatTicks != 0 {
		return
	}
	heads := m.proofs.followedHeads()
	if heads == nil {
		return
	}
	m.sendHeads(out, heads, func(to int) bool { return m.Votes(to) || to == m.proofs.submitter })
}

// askForLog makes the submitter's peer ask the voters for the log while it hears no leader. The link to the
// leader may be down, or the leader lies and sends nothing to keep the submitter's peer out.
func (m *Member) askForLog(out *Output) {
	if m.now%heartbeatTicks != 0 || !m.missesLeader() {
		return
	}
	for _, peer := range m.sources() {
		msg := m.message(peer)
		msg.After = m.node.BasicStatus().GetCommit()
		out.Send = append(out.Send, msg)
	}
}

// sources returns the peers that the submitter's peer asks for the log: the voters. A new process of the submitter
// may not know who votes now. Until it is admitted, it also asks all other peers, a few at a time.
func (m *Member) sources() (peers []int) {
	for _, id := range m.conf.GetVoters() {
		peers = append(peers, int(id)-1)
	}
	if _, admitted := m.config.IDs[m.config.Self]; !admitted {
		others := slices.Sorted(maps.Keys(m.config.Told))
		for peer := range m.config.Peers {
			others = append(others, peer)
		}
		others = slices.DeleteFunc(others, func(peer int) bool { return slices.Contains(peers, peer) })
		if len(others) > maxSources {
			first := m.now / heartbeatTicks * maxSources % len(others)
			others = slices.Concat(others[first:], others[:first])[:maxSources]
		}
		peers = append(peers, others...)
	}
	return slices.DeleteFunc(peers, func(peer int) bool {
		id, _ := m.proofs.identity(peer)
		return id == m.config.IDs[submitterPeer]
	})
}

// maxSources bounds the peers beside the voters that are asked for the log at a time.
const maxSources = 16

// sendHeads sends heads to the other members that the function selects, except the leader.
func (m *Member) sendHeads(out *Output, heads []*Statement, selects func(peer int) bool) {
	for _, id := range slices.Concat(m.conf.GetVoters(), m.conf.GetLearners()) {
		if to := int(id) - 1; to != m.config.Self && to != m.proofs.leader && selects(to) {
			msg := m.message(to)
			msg.Heads = heads
			out.Send = append(out.Send, msg)
		}
	}
}

// apply handles a committed entry of the log.
func (m *Member) apply(out *Output, e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal {
		m.reconfigure(out, e)
		return
	}
	p, err := decodeProposal(e.GetData())
	if err != nil {
		return // the empty entry of a new leader; all peers ignore it
	}
	m.accept(out, p)
	m.wanted = slices.DeleteFunc(m.wanted, func(w Proposal) bool { return w.repeats(p) || !m.matters(w) })
}

// Bounds on the log of a correct group, in bytes. Each process joins at most once, finishes and fails. Now
// and then a process becomes the master of its rank. A few peers may propose each change at the same time,
// and again after an election. The log also contains the row of each newcomer.
const (
	// entryCost is the overhead of an entry, its hash included.
	entryCost = 320
	// logOfAll is for changes of the voters and for elections; a flapping link causes any number of them.
	logOfAll = 16 << 20
	// logOfEach is for each process.
	logOfEach = 2 << 10
)

// maxLog is more than a correct group ever writes to its log, in bytes. It grows with time to leave room
// for elections.
func (m *Member) maxLog() int {
	return logOfAll + logOfEach*len(m.view.States) + entryCost*(m.now/electionTicks)
}

// countLog adds the size of new entries. A malicious member can send an endless log; if the log exceeds its
// bound, countLog ends this peer's part in the group.
func (m *Member) countLog(entries []*raftpb.Entry) {
	for _, e := range entries {
		m.logged += entryCost + proto.Size(e)
	}
	if m.logged > m.maxLog() {
		m.broken = fmt.Errorf("view group: a log of %d bytes", m.logged)
	}
}
