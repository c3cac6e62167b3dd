package switchboard

import (
	"bytes"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A Table is a job's membership table: the peer of each process, the addresses of those peers, and the public
// keys of the processes. Callers only read its fields.
type Table struct {
	PeerOf map[view.Process]p2ppeer.ID
	Addrs  map[p2ppeer.ID][]ma.Multiaddr
	Here   int // processes on this machine, including those of its other peers

	at    Place
	keys  []byte                  // public keys of the processes that were there at the start, rank by rank
	later map[view.Process][]byte // public keys of the processes that joined later
	taken int                     // number of addresses in the table
}

// Bounds of a table that another peer sends.
const (
	// maxTableAddrs bounds the addresses in a table. In a large job, each peer has fewer addresses.
	maxTableAddrs = 1 << 14
	// maxID bounds a peer's ID, in bytes.
	maxID = 128
)

// A Place holds the facts that a table must state correctly: this peer, its machine, and the size of the job.
type Place struct {
	Self    p2ppeer.ID
	Machine []byte
	N, R    int
}

// hasRoom reports whether the job can have a process p, from the start or after it has joined its rank
// (view.Joiner).
func (at Place) hasRoom(p view.Process) bool {
	return p.Rank < at.N && (p.Replica < at.R || p.Replica < view.MaxReplicas && at.N <= view.MaxProcesses/(p.Replica+1))
}

// NewTable reads the table of a Start. The table must name this peer for exactly the local processes, and no
// process twice. Processes may be missing; there are no channels to those.
func NewTable(members []*jobpb.Member, at Place, local []view.Process) (Table, error) {
	t := Table{
		PeerOf: make(map[view.Process]p2ppeer.ID), Addrs: make(map[p2ppeer.ID][]ma.Multiaddr),
		at: at, later: make(map[view.Process][]byte),
	}
	if len(members) > view.MaxProcesses {
		return t, fmt.Errorf("membership table of %d processes", len(members))
	}
	here := make(map[view.Process]bool, len(local))
	for _, p := range local {
		here[p] = true
	}
	each := maxTableAddrs / max(1, len(members))
	for _, row := range members {
		if err := t.add(row, here[row.GetProcess().View()], each); err != nil {
			return t, fmt.Errorf("membership table: %w", err)
		}
	}
	for _, p := range local {
		if _, ok := t.PeerOf[p]; !ok {
			return t, fmt.Errorf("membership table: process %v is missing", p)
		}
	}
	return t, nil
}

// Add adds the row of a process that joins the job. local tells whether the process runs on this peer.
func (t *Table) Add(row *jobpb.Member, local bool) error {
	if err := t.add(row, local, jobpb.MaxAddrs); err != nil {
		return fmt.Errorf("membership table: %w", err)
	}
	return nil
}

// add adds a row with at most addrs of its addresses.
func (t *Table) add(row *jobpb.Member, local bool, addrs int) error {
	p := row.GetProcess().View()
	if n := len(row.GetPeer()); n > maxID {
		return fmt.Errorf("peer of process %v: ID of %d bytes", p, n)
	}
	peer, err := p2ppeer.IDFromBytes(row.GetPeer())
	if err != nil {
		return fmt.Errorf("peer of process %v: %w", p, err)
	}
	if _, twice := t.PeerOf[p]; twice || !t.at.hasRoom(p) || (peer == t.at.Self) != local {
		return fmt.Errorf("unexpected row: process %v on peer %s", p, peer)
	}
	t.PeerOf[p] = peer
	t.taken -= len(t.Addrs[peer])
	t.Addrs[peer] = ReadAddrs(row.GetAddrs(), min(addrs, maxTableAddrs-t.taken))
	t.taken += len(t.Addrs[peer])
	t.Learn(p, row.GetKey())
	if peer == t.at.Self || len(t.at.Machine) > 0 && bytes.Equal(row.GetMachine(), t.at.Machine) {
		t.Here++
	}
	return nil
}

// Learn stores the key of a process, if it has the right size.
func (t *Table) Learn(p view.Process, key []byte) {
	if len(key) == proclink.KeySize {
		t.later[p] = bytes.Clone(key)
	}
}

func (t *Table) key(p view.Process) []byte {
	if p.Rank < 0 || p.Rank >= t.at.N || p.Replica < 0 || p.Replica >= t.at.R {
		return t.later[p]
	}
	i := (p.Rank*t.at.R + p.Replica) * proclink.KeySize
	if i+proclink.KeySize > len(t.keys) {
		return nil
	}
	key := t.keys[i : i+proclink.KeySize]
	if bytes.Count(key, []byte{0}) == len(key) {
		return nil
	}
	return key
}

// ReadAddrs returns the valid addresses of in, at most most of them. It skips addresses that are too long
// or of an unknown kind: they are no reason to refuse the job.
func ReadAddrs(in [][]byte, most int) (out []ma.Multiaddr) {
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
