package launch

import (
	"bytes"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// maxAddrs bounds the addresses of one peer that are taken from outside.
const maxAddrs = 32

// A membership is a job's membership table: which peer runs which process, and
// where those peers are.
type membership struct {
	peerOf map[view.Process]p2ppeer.ID
	addrs  map[p2ppeer.ID][]ma.Multiaddr
	here   int // processes on this machine, those of its other peers too
}

// newMembership reads the table of a Start, as peer self on machine. It must name self for the local
// processes and for no others, and no process twice. Processes may be missing:
// there are no channels to them.
func newMembership(members []*jobpb.Member, n, r int, self p2ppeer.ID, machine []byte, local map[view.Process]*process) (membership, error) {
	m := membership{peerOf: make(map[view.Process]p2ppeer.ID), addrs: make(map[p2ppeer.ID][]ma.Multiaddr)}
	if len(members) > n*r {
		return m, fmt.Errorf("membership table of %d processes for n=%d r=%d", len(members), n, r)
	}
	for _, row := range members {
		p := row.GetProcess().View()
		peer, err := p2ppeer.IDFromBytes(row.GetPeer())
		if err != nil {
			return m, fmt.Errorf("membership table: peer of process %v: %w", p, err)
		}
		if _, twice := m.peerOf[p]; twice || p.Rank >= n || p.Replica >= r || (peer == self) != (local[p] != nil) {
			return m, fmt.Errorf("membership table: process %v on peer %s", p, peer)
		}
		m.peerOf[p] = peer
		m.addrs[peer] = readAddrs(row.GetAddrs())
		if peer == self || len(machine) > 0 && bytes.Equal(row.GetMachine(), machine) {
			m.here++
		}
	}
	for p := range local {
		if _, ok := m.peerOf[p]; !ok {
			return m, fmt.Errorf("membership table: process %v is not in it", p)
		}
	}
	return m, nil
}

// readAddrs reads the addresses that can be read: those of a newer kind are of
// no use, and no reason to refuse the job.
func readAddrs(in [][]byte) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, b := range in[:min(len(in), maxAddrs)] {
		if a, err := ma.NewMultiaddrBytes(b); err == nil {
			out = append(out, a)
		}
	}
	return out
}
