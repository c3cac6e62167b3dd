package viewgroup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// A Proposal is a change with the signature of the peer that proposes it. The log contains proposals
// instead of changes, so no member, not even the leader, can propose a change in another peer's name. The
// effect of a committed proposal depends on its author (V4):
//
//	author                          change           effect
//	the submitter's peer            any              at once, under each of its numbers
//	the peer that hosts Process     finished, failed at once
//	                                or counts again
//	a juror of Process              failed           once a majority of the jurors has proposed it
//	any other                       any              none
//
// The jurors of a process are the other peers that host processes of the view that have not failed, at
// most the maxMembers with the lowest numbers. The submitter's peer is an additional juror while it votes.
// The peer of the process itself is never a juror. All members determine the same jurors, since all have
// the same log.
type Proposal struct {
	Change    view.Change
	Author    int // number of the peer
	Signature []byte
}

// submitterPeer is the first number of the submitter's peer. A later process of the submitter has another number:
// see Newcomer.
const submitterPeer = 0

// isSubmitter reports whether a number in the log is one of the submitter's peer.
func (c Config) isSubmitter(number int) bool { return c.IDs[number] == c.IDs[submitterPeer] }

// A Verify function reports whether a peer has signed a statement.
type Verify func(by p2ppeer.ID, statement, signature []byte) bool

// A Signer function signs a statement of this peer. It returns nil if it cannot.
type Signer func(statement []byte) []byte

// statement returns the text that the author of p signs, without the name of the job.
func (p Proposal) statement() []byte {
	return fmt.Appendf(p.Change.Encode(), "by %d", p.Author)
}

// statement returns the text that the submitter signs for a newcomer, without the name of the job.
func (n Newcomer) statement() []byte {
	hash := sha256.Sum256(n.Row)
	return n.statementOn(hash[:])
}

// statementOn is statement for a row with the given hash.
func (n Newcomer) statementOn(rowHash []byte) []byte {
	return fmt.Appendf([]byte("newcomer "), "%d %x %v %x", n.Peer, []byte(n.ID), n.Process, rowHash)
}

// Sign returns a signed proposal of the peer with number author and the given key, for the given job.
func Sign(key crypto.PrivKey, job string, author int, c view.Change) (Proposal, error) {
	p := Proposal{Change: c, Author: author}
	var err error
	if p.Signature, err = key.Sign(bindToJob(job, p.statement())); err != nil {
		return p, fmt.Errorf("sign a change of the view: %w", err)
	}
	return p, nil
}

// Sign signs n with the key of the submitter's peer, for the given job.
func (n *Newcomer) Sign(key crypto.PrivKey, job string) error {
	var err error
	if n.Signature, err = key.Sign(bindToJob(job, n.statement())); err != nil {
		return fmt.Errorf("sign the introduction of a peer: %w", err)
	}
	return nil
}

// bindToJob prefixes a statement with the job, so that it is not valid for another job.
func bindToJob(job string, statement []byte) []byte {
	return append(fmt.Appendf(nil, "p2pmpi view of job %q: ", job), statement...)
}

// verifier returns the Verify function of a job. It derives each peer's public key from the peer ID.
func verifier(job string) Verify {
	return func(by p2ppeer.ID, statement, signature []byte) bool {
		key, err := by.ExtractPublicKey()
		if err != nil {
			return false
		}
		ok, err := key.Verify(bindToJob(job, statement), signature)
		return ok && err == nil
	}
}

// signer returns the Signer of a job for the peer with the given key.
func signer(key crypto.PrivKey, job string) Signer {
	return func(statement []byte) []byte {
		signature, err := key.Sign(bindToJob(job, statement))
		if err != nil { // other peers refuse the statement
			return nil
		}
		return signature
	}
}

// maxProposal bounds an encoded Proposal, in bytes.
const maxProposal = 1 << 10

var errProposal = errors.New("not a proposal")

func (p Proposal) encode() []byte {
	b, err := proto.Marshal(&pb.Proposal{Change: p.Change.Encode(), Author: uint32(p.Author), Signature: p.Signature})
	if err != nil {
		panic(err) // only for text that is not UTF-8; the message has no text
	}
	return b
}

func decodeProposal(b []byte) (p Proposal, err error) {
	if len(b) == 0 || len(b) > maxProposal {
		return p, fmt.Errorf("%w: %d bytes", errProposal, len(b))
	}
	var m pb.Proposal
	if err := proto.Unmarshal(b, &m); err != nil {
		return p, fmt.Errorf("%w: %w", errProposal, err)
	}
	c, err := view.DecodeChange(m.GetChange())
	if err != nil {
		return p, err
	}
	return Proposal{Change: c, Author: int(m.GetAuthor()), Signature: m.GetSignature()}, nil
}

// forged reports whether p is known not to be genuine. An unknown author may be a newcomer that this peer's
// log does not contain yet.
func (m *Member) forged(p Proposal) bool {
	_, known := m.config.IDs[p.Author]
	return known && !m.genuine(p)
}

// genuine reports whether p has a valid signature and concerns a process that the job can have.
func (m *Member) genuine(p Proposal) bool {
	id, known := m.config.IDs[p.Author]
	return known && p.Change.Process.Rank < m.view.N && m.config.Verify(id, p.statement(), p.Signature)
}

// decides reports whether a proposal of p's author takes effect without others.
func (m *Member) decides(p Proposal) bool {
	host, known := m.config.RunsOn[p.Change.Process]
	return m.config.isSubmitter(p.Author) || known && host == p.Author && (p.Change.To != view.Live || p.Change.Returns())
}

// matters reports whether p has an effect now, or may have one together with other jurors.
func (m *Member) matters(p Proposal) bool {
	if _, changes := p.Change.Apply(m.view); !changes {
		return false
	}
	if p.Author == m.config.Self && m.isSubmitter() { // it may not be admitted yet
		return true
	}
	return m.decides(p) || p.Change.To == view.Failed && slices.Contains(m.jurors(p.Change.Process), p.Author) &&
		!m.accusers[p.Change.Process][p.Author]
}

// jurors returns the numbers of the jurors of process p. A majority of them can fail p.
func (m *Member) jurors(p view.Process) (peers []int) {
	host, known := m.config.RunsOn[p]
	for process, peer := range m.config.RunsOn {
		if m.view.Has(process) && !(known && peer == host) && !m.config.isSubmitter(peer) && !slices.Contains(peers, peer) {
			peers = append(peers, peer)
		}
	}
	slices.Sort(peers)
	peers = peers[:min(len(peers), maxMembers)]
	if last := m.lastSubmitter(); m.Votes(last) && !(known && m.config.isSubmitter(host)) {
		peers = append(peers, last)
	}
	return peers
}

// accept applies a committed proposal.
func (m *Member) accept(out *Output, p Proposal) {
	if !m.genuine(p) {
		return
	}
	if _, changes := p.Change.Apply(m.view); !changes {
		return
	}
	switch {
	case m.decides(p):
		m.commit(out, p.Change, []int{p.Author})
	case p.Change.To == view.Failed && !m.accusers[p.Change.Process][p.Author]:
		m.accuse(p)
	default:
		return
	}
	m.failAccused(out)
}

// accuse records the accusation p, even if its author is not a juror yet.
func (m *Member) accuse(p Proposal) {
	if m.accusers[p.Change.Process] == nil {
		m.accusers[p.Change.Process] = make(map[int]bool)
	}
	m.accusers[p.Change.Process][p.Author] = true
}

// commit applies c, which must change the view; by are its authors.
func (m *Member) commit(out *Output, c view.Change, by []int) {
	m.view, _ = c.Apply(m.view)
	out.Committed = append(out.Committed, Committed{Change: c, Epoch: m.view.Epoch, By: by})
}

// failAccused fails every process that a majority of its jurors accuses. It repeats until nothing changes,
// since each failure may shrink the set of jurors of another process.
func (m *Member) failAccused(out *Output) {
	for again := true; again; {
		again = false
		for _, p := range m.view.Processes() {
			if by := m.majority(p); by != nil {
				m.commit(out, view.Change{Process: p, To: view.Failed}, by)
				again = true
			}
		}
	}
}

// majority returns the jurors that accuse process p, if they are a majority and p has not failed; otherwise
// nil.
func (m *Member) majority(p view.Process) (by []int) {
	accusers := m.accusers[p]
	if len(accusers) == 0 || !m.view.Has(p) {
		return nil
	}
	jurors := m.jurors(p)
	for _, peer := range jurors {
		if accusers[peer] {
			by = append(by, peer)
		}
	}
	if 2*len(by) <= len(jurors) {
		return nil
	}
	return by
}
