package launch

import (
	"encoding/binary"
	"sync"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// TestO4AddressesAreRemovedWithTheJob checks that the addresses are removed with the job, except
// those of peers that another job has.
func TestO4AddressesAreRemovedWithTheJob(t *testing.T) {
	m := newMember(t, 0)
	book := m.Peerstore()
	before := len(book.PeersWithAddrs())
	table := func(peers int) map[p2ppeer.ID][]ma.Multiaddr {
		out := make(map[p2ppeer.ID][]ma.Multiaddr)
		for i := range peers {
			out[p2ppeer.ID(binary.BigEndian.AppendUint32([]byte{0, 4}, uint32(i)))] = []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/4097")}
		}
		return out
	}
	job := func(id string, peers int) protectedPeers {
		p := protectedPeers{host: m, mu: new(sync.Mutex), tag: id}
		p.protect("submitter", table(peers))
		return p
	}
	wide, narrow := job("wide", 1000), job("narrow", 1)
	if n := len(book.PeersWithAddrs()); n != before+1000 {
		t.Fatalf("%d peers in the address book, %d before", n, before)
	}
	wide.release("submitter", table(1000))
	if n := len(book.PeersWithAddrs()); n != before+1 {
		t.Errorf("%d peers in the address book with one job left, %d before", n, before)
	}
	narrow.release("submitter", table(1))
	if n := len(book.PeersWithAddrs()); n != before {
		t.Errorf("%d peers in the address book, %d before", n, before)
	}
}
