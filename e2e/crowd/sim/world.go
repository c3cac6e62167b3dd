package sim

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Ledger is a peer's record of its slots: a [reservation.Ledger], or in a test one that breaks a
// promise.
type Ledger interface {
	Hold(q reservation.Request, key reservation.Key, now time.Time) (reservation.Grant, error)
	Confirm(key reservation.Key, submitter p2ppeer.ID, slots int, now time.Time) error
	Redeem(key reservation.Key, job string, submitter p2ppeer.ID, now time.Time) (int, error)
	Release(key reservation.Key)
	Abandon(key reservation.Key)
	Withdraw(job string, submitter p2ppeer.ID, waits bool)
	Expire(now time.Time) []reservation.Key
	Snapshot() reservation.Status
}

// A Fault is a failure mode of a peer.
type Fault byte

// The faults, in order of severity.
const (
	None   Fault = iota
	Silent       // executes requests but never answers
	Dead         // unreachable
)

// A Peer is a simulated peer with slots.
type Peer struct {
	ID     p2ppeer.ID
	Limits reservation.Limits
	Fault  Fault
	Ledger Ledger
}

// A World is a set of peers and the links to them.
type World struct {
	RTT time.Duration // between a submitter and a peer

	mu      sync.Mutex
	peers   map[p2ppeer.ID]*Peer
	keys    uint64 // number of keys issued
	history History
}

// newWorld returns a world with these peers. A peer without a ledger gets a real one.
func newWorld(rtt time.Duration, peers ...*Peer) *World {
	w := &World{RTT: rtt, peers: map[p2ppeer.ID]*Peer{}, history: History{Limits: map[p2ppeer.ID]reservation.Limits{}}}
	for _, p := range peers {
		if p.Ledger == nil {
			p.Ledger = reservation.NewLedger(p.Limits)
		}
		w.peers[p.ID] = p
		w.history.Limits[p.ID] = p.Limits
	}
	return w
}

// ids returns the IDs of the peers, sorted.
func (w *World) ids() []p2ppeer.ID { return slices.Sorted(maps.Keys(w.peers)) }

// Use counts slots by their use.
type Use struct{ Total, Running, Free int }

// use returns the current use of the slots of all peers without a fault.
func (w *World) use() (u Use) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.peers {
		if p.Fault == None {
			p.Ledger.Expire(time.Now())
			s := p.Ledger.Snapshot()
			u.Total, u.Running, u.Free = u.Total+s.Total, u.Running+s.Running, u.Free+s.Free
		}
	}
	return u
}

// Observe adds the current state of every peer to the history.
func (w *World) Observe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.peers {
		w.record(p, Operation{Kind: Observed})
	}
}

// History returns the operations so far.
func (w *World) History() *History {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.history
	return &h
}

// record appends an operation that p has just executed. The caller holds w.mu.
func (w *World) record(p *Peer, op Operation) {
	op.At, op.Peer = time.Now(), p.ID
	p.Ledger.Expire(op.At)
	op.Free = p.Ledger.Snapshot().Free
	w.history.Operations = append(w.history.Operations, op)
}

// A Submitter is a [reservation.Requester]. Once killed, it sends and receives nothing.
type Submitter struct {
	ID     p2ppeer.ID
	world  *World
	killed context.Context
}

// Submitter returns a submitter with the given ID, alive until the context ends.
func (w *World) Submitter(killed context.Context, id p2ppeer.ID) *Submitter {
	return &Submitter{ID: id, world: w, killed: killed}
}

// travel waits for half a round trip.
func (s *Submitter) travel(ctx context.Context) error {
	select {
	case <-time.After(s.world.RTT / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.killed.Done():
		return s.killed.Err()
	}
}

// call executes do at a peer and returns the result. If the caller no longer waits for the answer, undo
// follows, as after a reset stream.
func (s *Submitter) call(ctx context.Context, peer p2ppeer.ID, do func(*Peer) error, undo func(*Peer)) error {
	if s.killed.Err() != nil {
		return s.killed.Err()
	}
	if err := s.travel(ctx); err != nil {
		return err
	}
	p := s.world.peers[peer]
	if p.Fault == Dead {
		return s.wait(ctx, reservation.Unreachable)
	}
	s.world.mu.Lock()
	err := do(p)
	s.world.mu.Unlock()
	lost := s.travel(ctx)
	if p.Fault == Silent && lost == nil {
		lost = s.wait(ctx, reservation.Silent)
	}
	if lost != nil && err == nil {
		time.AfterFunc(s.world.RTT/2, func() {
			s.world.mu.Lock()
			defer s.world.mu.Unlock()
			undo(p)
		})
	}
	if lost != nil {
		return lost
	}
	return err
}

// wait waits until ctx ends and returns the error for the reason why.
func (s *Submitter) wait(ctx context.Context, why reservation.Reason) error {
	select {
	case <-ctx.Done():
	case <-s.killed.Done():
	}
	return why
}

// Hold asks a peer for slots.
func (s *Submitter) Hold(ctx context.Context, peer p2ppeer.ID, q reservation.Request) (g reservation.Grant, err error) {
	q.Submitter = s.ID
	err = s.call(ctx, peer, func(p *Peer) (err error) {
		g, err = p.Ledger.Hold(q, s.world.key(), time.Now())
		if err == nil {
			s.world.record(p, Operation{Kind: Granted, Submitter: s.ID, Job: q.Job, Key: g.Key, Slots: g.Slots, Expires: g.Expires})
		}
		return err
	}, func(p *Peer) {
		p.Ledger.Abandon(g.Key)
		s.world.record(p, Operation{Kind: Abandoned, Key: g.Key})
	})
	return g, err
}

// key returns a new key. The caller holds w.mu.
func (w *World) key() (k reservation.Key) {
	w.keys++
	binary.BigEndian.PutUint64(k[:], w.keys)
	return k
}

// Confirm keeps the given number of the slots that key holds at a peer.
func (s *Submitter) Confirm(ctx context.Context, peer p2ppeer.ID, key reservation.Key, slots int) error {
	return s.call(ctx, peer, func(p *Peer) error {
		err := p.Ledger.Confirm(key, s.ID, slots, time.Now())
		if err == nil {
			s.world.record(p, Operation{Kind: Confirmed, Submitter: s.ID, Key: key, Slots: slots})
		}
		return err
	}, func(*Peer) {})
}

// Release releases the slots that job holds at a peer and has not used.
func (s *Submitter) Release(ctx context.Context, peer p2ppeer.ID, job string, waits bool) error {
	return s.call(ctx, peer, func(p *Peer) error {
		p.Ledger.Withdraw(job, s.ID, waits)
		s.world.record(p, Operation{Kind: Withdrawn, Submitter: s.ID, Job: job})
		return nil
	}, func(*Peer) {})
}

// Start starts the processes of job at the peer that holds key for them.
func (s *Submitter) Start(ctx context.Context, peer p2ppeer.ID, job string, key reservation.Key) error {
	return s.call(ctx, peer, func(p *Peer) error {
		slots, err := p.Ledger.Redeem(key, job, s.ID, time.Now())
		if err == nil {
			s.world.record(p, Operation{Kind: Redeemed, Submitter: s.ID, Job: job, Key: key, Slots: slots})
		}
		return err
	}, func(*Peer) {})
}

// Gone records that a peer has found the processes of key to have ended.
func (w *World) Gone(peer p2ppeer.ID, key reservation.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.peers[peer]
	p.Ledger.Release(key)
	w.record(p, Operation{Kind: Released, Key: key})
}

// offers returns what each peer would offer now, in the given order. It includes dead peers as if they
// were alive.
func (w *World) offers(order []p2ppeer.ID) []reservation.Candidate {
	w.mu.Lock()
	defer w.mu.Unlock()
	cs := make([]reservation.Candidate, len(order))
	for i, id := range order {
		p := w.peers[id]
		p.Ledger.Expire(time.Now())
		st := p.Ledger.Snapshot()
		cs[i] = reservation.Candidate{Peer: id, Slots: st.Free, Total: st.Total}
	}
	return cs
}
