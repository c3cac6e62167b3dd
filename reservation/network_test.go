package reservation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A memoryNet is a set of in-memory peers, each a real ledger behind a link with some latency. It
// replaces everything between Requester and Ledger.
type memoryNet struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	latency time.Duration // upper bound in one direction
	peers   map[p2ppeer.ID]*memoryPeer
}

type memoryPeer struct {
	ledger *Ledger
	silent bool // the peer processes requests, but never answers
	fails  bool // the peer refuses to confirm
	deaf   bool // the peer receives no requests
}

func newMemoryNet(seed uint64, latency time.Duration, slots ...int) *memoryNet {
	n := &memoryNet{rnd: rand.New(rand.NewPCG(seed, 0)), latency: latency, peers: map[p2ppeer.ID]*memoryPeer{}}
	for _, c := range candidates(slots...) {
		n.peers[c.Peer] = &memoryPeer{ledger: NewLedger(Limits{Slots: c.Slots})}
	}
	return n
}

// offers returns the current offers of the peers, ordered by name.
func (n *memoryNet) offers() []Candidate {
	n.mu.Lock()
	defer n.mu.Unlock()
	cs := candidates(make([]int, len(n.peers))...)
	for i, c := range cs {
		cs[i].Slots = n.peers[c.Peer].ledger.Snapshot().Free
	}
	return cs
}

// used returns the number of slots in use, including those with an expired lease.
func (n *memoryNet) used() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	used := 0
	for _, p := range n.peers {
		s := p.ledger.Snapshot()
		used += s.Total - s.Free
	}
	return used
}

// A submitter is one Requester on the network.
type submitter struct {
	*memoryNet
	id p2ppeer.ID
}

// travel waits for a random latency.
func (n *memoryNet) travel(ctx context.Context) error {
	n.mu.Lock()
	d := time.Duration(n.rnd.Int64N(int64(n.latency) + 1))
	n.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call delivers do and returns its result.
func (s submitter) call(ctx context.Context, peer p2ppeer.ID, do func(*memoryPeer) error) error {
	if err := s.travel(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.peers[peer]
	var err error
	if !p.deaf {
		err = do(p)
	}
	s.mu.Unlock()
	if p.silent || p.deaf {
		<-ctx.Done()
		return ctx.Err()
	}
	if lost := s.travel(ctx); lost != nil {
		return lost
	}
	return err
}

func (s submitter) Hold(ctx context.Context, peer p2ppeer.ID, q Request) (g Grant, err error) {
	q.Submitter = s.id
	err = s.call(ctx, peer, func(p *memoryPeer) (err error) {
		g, err = p.ledger.Hold(q, newKey(), time.Now())
		return err
	})
	return g, err
}

func (s submitter) Confirm(ctx context.Context, peer p2ppeer.ID, key Key, slots int) error {
	return s.call(ctx, peer, func(p *memoryPeer) error {
		if p.fails {
			return UnknownKey
		}
		return p.ledger.Confirm(key, s.id, slots, time.Now())
	})
}

func (s submitter) Release(ctx context.Context, peer p2ppeer.ID, job string, waits bool) error {
	return s.call(ctx, peer, func(p *memoryPeer) error {
		p.ledger.Withdraw(job, s.id, waits)
		return nil
	})
}
