package launch

import (
	"bytes"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A membership is a job's membership table: the peer of each process, and the addresses of those peers.
type membership struct {
	peerOf map[view.Process]p2ppeer.ID
	addrs  map[p2ppeer.ID][]ma.Multiaddr
	keys   map[view.Process][]byte // of the processes that joined later
	here   int                     // processes on this machine, including those of its other peers
	taken  int                     // number of addresses in the table
}

// Bounds of a table that another peer sends.
const (
	// maxTableAddrs bounds the addresses in a table. In a large job, each peer has fewer addresses.
	maxTableAddrs = 1 << 14
	// maxID bounds a peer's ID, in bytes.
	maxID = 128
)

// A place holds the facts that a table must state correctly: this peer, its machine, the processes here,
// and the size of the job.
type place struct {
	self    p2ppeer.ID
	machine []byte
	local   map[view.Process]*process
	n, r    int
}

// hasRoom reports whether the job can have a process p, from the start or after it has joined its rank
// (view.Joiner).
func (at place) hasRoom(p view.Process) bool {
	return p.Rank < at.n && (p.Replica < at.r || p.Replica < view.MaxReplicas && at.n <= view.MaxProcesses/(p.Replica+1))
}

// newMembership reads the table of a Start. The table must name this peer for exactly the local processes,
// and no process twice. Processes may be missing; there are no channels to those.
func newMembership(members []*jobpb.Member, at place) (membership, error) {
	m := membership{
		peerOf: make(map[view.Process]p2ppeer.ID), addrs: make(map[p2ppeer.ID][]ma.Multiaddr),
		keys: make(map[view.Process][]byte),
	}
	if len(members) > view.MaxProcesses {
		return m, fmt.Errorf("membership table of %d processes", len(members))
	}
	each := maxTableAddrs / max(1, len(members))
	for _, row := range members {
		if err := m.add(row, at, each); err != nil {
			return m, fmt.Errorf("membership table: %w", err)
		}
	}
	for p := range at.local {
		if _, ok := m.peerOf[p]; !ok {
			return m, fmt.Errorf("membership table: process %v is missing", p)
		}
	}
	return m, nil
}

// add adds a row with at most addrs of its addresses.
func (m *membership) add(row *jobpb.Member, at place, addrs int) error {
	p := row.GetProcess().View()
	if n := len(row.GetPeer()); n > maxID {
		return fmt.Errorf("peer of process %v: ID of %d bytes", p, n)
	}
	peer, err := p2ppeer.IDFromBytes(row.GetPeer())
	if err != nil {
		return fmt.Errorf("peer of process %v: %w", p, err)
	}
	if _, twice := m.peerOf[p]; twice || !at.hasRoom(p) || (peer == at.self) != (at.local[p] != nil) {
		return fmt.Errorf("unexpected row: process %v on peer %s", p, peer)
	}
	m.peerOf[p] = peer
	m.taken -= len(m.addrs[peer])
	m.addrs[peer] = readAddrs(row.GetAddrs(), min(addrs, maxTableAddrs-m.taken))
	m.taken += len(m.addrs[peer])
	m.learn(p, row.GetKey())
	if peer == at.self || len(at.machine) > 0 && bytes.Equal(row.GetMachine(), at.machine) {
		m.here++
	}
	return nil
}

// learn stores the key of a process, if it has the right size.
func (m *membership) learn(p view.Process, key []byte) {
	if len(key) == proclink.KeySize {
		m.keys[p] = bytes.Clone(key)
	}
}

// place returns the facts about this part of the job.
func (j *job) place() place {
	return place{self: j.service.host.ID(), machine: machineOf(j.spec.ID), local: j.local, n: j.spec.N, r: j.spec.R}
}

// joined adds the row of a process that joins the job.
func (j *job) joined(row *jobpb.Member) error {
	p := row.GetProcess().View()
	if _, known := j.members.peerOf[p]; known { // its key may be new
		j.members.learn(p, row.GetKey())
		return nil
	}
	j.superseded(row)
	if err := j.members.add(row, j.place(), jobpb.MaxAddrs); err != nil {
		return fmt.Errorf("membership table: %w", err)
	}
	j.protectPeer(p2ppeer.ID(row.GetPeer()))
	j.take(j.ahead)
	return nil
}

// readAddrs returns the valid addresses of in, at most most of them. It skips addresses that are too long
// or of an unknown kind: they are no reason to refuse the job.
func readAddrs(in [][]byte, most int) (out []ma.Multiaddr) {
	for _, b := range in[:min(len(in), jobpb.MaxAddrs)] {
		if len(b) > jobpb.MaxAddr || len(out) >= most {
			continue
		}
		if a, err := ma.NewMultiaddrBytes(b); err == nil {
			out = append(out, a)
		}
	}
	return out
}
