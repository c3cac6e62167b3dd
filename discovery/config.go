package discovery

import (
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"
)

// Config says which network to join and how.
type Config struct {
	// Network is the network's name: 1 to 64 letters, digits or . _ - +.
	// Peers of different names never find each other.
	Network string

	// Supernodes are the peers to be introduced by; the local peer itself is
	// passed over. With none, mDNS and incoming connections have to do.
	Supernodes []p2ppeer.AddrInfo

	// PeersFile keeps peers that were met, of this network, so that a restart needs no supernode.
	// Empty: they are forgotten.
	PeersFile string

	// MDNS finds and announces peers on the LAN. A host that listens on
	// loopback addresses only stays off the LAN all the same.
	MDNS bool

	// Neighbour hears of each peer that the LAN tells of, before it is dialled; it must not block. Nil: nobody does.
	Neighbour func(p2ppeer.AddrInfo)

	// MayDial says whether the host dials a peer at an address that others have named: no other is
	// kept. Nil: any.
	MayDial func(p2ppeer.ID, ma.Multiaddr) bool

	// DHTServer makes this peer answer the DHT's queries: true for peers,
	// false for a submit-only peer, which is gone too soon to be relied on.
	DHTServer bool

	// Offer returns what this peer has for jobs now; it must not block. The
	// service fills in Peer, Network, Protocol, Release, OS, Arch, Machine, Reachability, Position,
	// Issued and Expires. Nil for a submit-only peer: it offers nothing and is not announced.
	Offer func() Offer

	// Machine names this machine in offers to the given peer; it must not block. Nil: offers name no machine.
	Machine func(asker p2ppeer.ID) string

	// Twin is told, at most once and from any goroutine, that another process has the
	// identity of this peer and has run for longer: its home may be a copy. It must not
	// block. Nil for a peer that does not ask.
	Twin func(*TwinError)

	// AskTimeout bounds connecting to one peer and getting its offer. Longer
	// waits for slow links; shorter gives up sooner on peers that are gone.
	AskTimeout time.Duration

	// SearchTimeout bounds one lookup in the DHT: for candidates, and at an introduction.
	SearchTimeout time.Duration

	// Parallel is how many peers are asked at the same time when few slots are wanted;
	// for many it is ParallelPerSlot for each of them. About every third that is asked
	// is gone, or has nothing free, so it takes more than one for each slot; a router
	// at home may not bear many hundreds.
	Parallel, ParallelPerSlot int

	// Grace is how long late answers are waited for once enough slots were found.
	Grace time.Duration

	// IntroduceTimeout bounds one attempt to reach the supernodes.
	IntroduceTimeout time.Duration

	// RetryMin and RetryMax bound the backoff between attempts to reach the
	// supernodes; RetryMax is also how often a lost supernode is looked for.
	RetryMin, RetryMax time.Duration

	// AdvertiseEvery is how often the rendezvous record is renewed.
	AdvertiseEvery time.Duration

	Log zerolog.Logger
}

// DefaultConfig returns the settings of a peer in the open network; Network
// and Offer are left to the caller.
func DefaultConfig() Config {
	return Config{
		MDNS:             true,
		DHTServer:        true,
		AskTimeout:       3 * time.Second,
		SearchTimeout:    3 * time.Second,
		Parallel:         32,
		ParallelPerSlot:  2,
		Grace:            200 * time.Millisecond, // a round trip across the world
		IntroduceTimeout: 8 * time.Second,
		RetryMin:         500 * time.Millisecond,
		RetryMax:         30 * time.Second,
		AdvertiseEvery:   15 * time.Minute,
		Log:              zerolog.Nop(),
	}
}

// maxParallel bounds how many peers are asked at the same time, whatever is wanted.
const maxParallel = 256

// parallel is how many peers a search for need asks at the same time.
func (c Config) parallel(need Need) int {
	return min(max(c.Parallel, c.ParallelPerSlot*need.Slots), max(c.Parallel, maxParallel))
}

// validate reports every wrong field at once.
func (c Config) validate() error {
	var errs []error
	if !validToken(c.Network) {
		errs = append(errs, fmt.Errorf("network %.80q: want 1 to %d letters, digits or . _ - +", c.Network, maxToken))
	}
	if c.Parallel < 1 || c.ParallelPerSlot < 0 {
		errs = append(errs, fmt.Errorf("parallel %d, %d for each slot: want at least 1, and 0", c.Parallel, c.ParallelPerSlot))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"ask timeout", c.AskTimeout},
		{"search timeout", c.SearchTimeout},
		{"introduce timeout", c.IntroduceTimeout},
		{"least retry interval", c.RetryMin},
		{"greatest retry interval", c.RetryMax},
		{"advertise interval", c.AdvertiseEvery},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %v: want more than 0", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}
