package discovery

import (
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"
)

// Config configures a Service: the network to join and how.
type Config struct {
	// Network is the network's name: 1 to 64 letters, digits or . _ - +.
	// Peers of different names never find each other.
	Network string

	// Supernodes are the peers that introduce this one. The local peer itself is ignored. Without
	// supernodes, the service relies on mDNS, remembered peers and incoming connections.
	Supernodes []p2ppeer.AddrInfo

	// PeersFile is the file that keeps the network's known peers, so that a restart needs no supernode.
	// If PeersFile is empty, they are not kept.
	PeersFile string

	// MDNS announces this peer on the LAN and looks for neighbours there. A host that listens only on
	// loopback addresses does not use mDNS.
	MDNS bool

	// Neighbour, if not nil, is called for each peer that mDNS finds, before the peer is dialled. Neighbour
	// must not block.
	Neighbour func(p2ppeer.AddrInfo)

	// MayDial reports whether the host may dial a peer at an address that other peers have given.
	// Addresses that it rejects are not remembered. Nil accepts all addresses.
	MayDial func(p2ppeer.ID, ma.Multiaddr) bool

	// DHTServer makes this peer answer DHT queries. It is true for daemons and false for a submit-only
	// peer, which is too short-lived for others to rely on.
	DHTServer bool

	// Offer returns the resources that this peer has for jobs now; it must not block. The service fills in
	// Peer, Network, Protocol, Release, OS, Arch, Machine, Reachability, Position, Issued and Expires. Offer
	// is nil for a submit-only peer, which offers nothing and is not announced.
	Offer func() Offer

	// Machine returns the name of this machine in offers to asker; it must not block. If Machine is nil,
	// offers name no machine.
	Machine func(asker p2ppeer.ID) string

	// Duplicate is called at most once, from any goroutine, when another process has the identity of this
	// peer and has run for longer. The local home directory may then be a copy. Duplicate must not block. If
	// Duplicate is nil, the service does not look for such a process.
	Duplicate func(*DuplicateError)

	// AskTimeout bounds connecting to one peer and getting its offer. A longer timeout tolerates slow
	// links; a shorter one gives up sooner on peers that have left.
	AskTimeout time.Duration

	// SearchTimeout bounds one DHT operation: a lookup, or an announcement.
	SearchTimeout time.Duration

	// Parallel is how many peers are asked at the same time when few slots are wanted. For many slots,
	// ParallelPerSlot peers are asked per slot. About a third of the asked peers have left or have nothing
	// free, so more than one is asked per slot. The total is limited because a home router may not cope
	// with many hundreds.
	Parallel, ParallelPerSlot int

	// Grace is how long the search waits for late answers once it has found enough slots.
	Grace time.Duration

	// IntroduceTimeout bounds one attempt to reach the supernodes.
	IntroduceTimeout time.Duration

	// RetryMin and RetryMax bound the backoff between attempts to reach the supernodes. RetryMax is also
	// the interval at which a lost supernode is tried again.
	RetryMin, RetryMax time.Duration

	// AdvertiseEvery is the interval at which the rendezvous record is renewed.
	AdvertiseEvery time.Duration

	Log zerolog.Logger
}

// DefaultConfig returns the settings of a peer in the open network. The caller sets Network and Offer.
func DefaultConfig() Config {
	return Config{
		MDNS:             true,
		DHTServer:        true,
		AskTimeout:       3 * time.Second,
		SearchTimeout:    3 * time.Second,
		Parallel:         32,
		ParallelPerSlot:  2,
		Grace:            200 * time.Millisecond, // about one round trip across the world
		IntroduceTimeout: 8 * time.Second,
		RetryMin:         500 * time.Millisecond,
		RetryMax:         30 * time.Second,
		AdvertiseEvery:   15 * time.Minute,
		Log:              zerolog.Nop(),
	}
}

// maxParallel bounds how many peers are asked at the same time, unless Config.Parallel is larger.
const maxParallel = 256

// parallel returns how many peers a search for need asks at the same time.
func (c Config) parallel(need Need) int {
	return min(max(c.Parallel, c.ParallelPerSlot*need.Slots), max(c.Parallel, maxParallel))
}

// validate returns an error that lists every invalid field.
func (c Config) validate() error {
	var errs []error
	if !validToken(c.Network) {
		errs = append(errs, fmt.Errorf("network %.80q: want 1 to %d letters, digits or . _ - +", c.Network, maxToken))
	}
	if c.Parallel < 1 || c.ParallelPerSlot < 0 {
		errs = append(errs, fmt.Errorf("parallel %d, parallel per slot %d: want at least 1 and at least 0", c.Parallel, c.ParallelPerSlot))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"ask timeout", c.AskTimeout},
		{"search timeout", c.SearchTimeout},
		{"introduce timeout", c.IntroduceTimeout},
		{"minimum retry interval", c.RetryMin},
		{"maximum retry interval", c.RetryMax},
		{"advertise interval", c.AdvertiseEvery},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %v: want more than 0", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}
