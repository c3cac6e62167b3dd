package launch

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// A protectedPeers keeps the connections to a job's peers from being trimmed, and the addresses of those peers in
// the address book.
type protectedPeers struct {
	host host.Host
	mu   *sync.Mutex // guards what jobs set in the connection manager and the address book
	tag  string      // the job's name for the connection manager. The submitter's own side of the job uses another name.
}

// tableTTL is the time for which the addresses of a membership table are stored. The odd nanosecond
// distinguishes them from addresses of other sources in the address book.
const tableTTL = time.Hour + time.Nanosecond

// protect protects the connections to the submitter's peer and to the peers of a membership table.
func (p protectedPeers) protect(submitter p2ppeer.ID, table map[p2ppeer.ID][]ma.Multiaddr) {
	p.host.ConnManager().Protect(submitter, p.tag)
	for peer, addrs := range table {
		p.add(peer, addrs)
	}
}

// add protects the connections to one peer.
func (p protectedPeers) add(peer p2ppeer.ID, addrs []ma.Multiaddr) {
	if peer == p.host.ID() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host.Peerstore().AddAddrs(peer, addrs, tableTTL)
	p.host.ConnManager().Protect(peer, p.tag)
}

// release reverts protect. It also removes the addresses that only this job's table named, since room in
// the address book is limited.
func (p protectedPeers) release(submitter p2ppeer.ID, table map[p2ppeer.ID][]ma.Multiaddr) {
	p.host.ConnManager().Unprotect(submitter, p.tag)
	for peer := range table {
		p.mu.Lock()
		if !p.host.ConnManager().Unprotect(peer, p.tag) { // otherwise another job may need them
			p.host.Peerstore().UpdateAddrs(peer, tableTTL, 0)
		}
		p.mu.Unlock()
	}
}
