package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A communicator's id is unique at each of its members.
//
// Ids are not consecutive numbers, because ranks and replicas would number communicators differently
// if two goroutines created communicators at the same time. Instead, an id is a hash of the parent's
// lineage, which is a hash of the parent's origin, and of the number of communicators that were
// created from the parent before. All members have both values. Ids have only 24 bits, so two
// lineages may yield the same id. Each member therefore checks whether it already uses the id. If a
// member does, all members try the next candidate.
//
// The communicators that one Split creates share their id, because they have no member in common. An
// id is used only once in a job, so a message of a freed communicator can never appear in another
// communicator.

// errDifferentOrder is the error of ranks that do not make the same calls.
var errDifferentOrder = errors.New("the ranks create communicators in different orders")

// attempts bounds the number of candidates tried for one communicator. If a process has used half
// of all ids, two attempts are needed on average.
const attempts = 64

// An identities is the set of ids that this process has used. Each id maps to its communicator, or
// to nil if the communicator is not created yet or was freed, or if the id belongs to the engine.
type identities struct {
	mu   sync.Mutex
	used map[uint32]*Comm
}

func newIdentities(world *Comm) *identities {
	return &identities{used: map[uint32]*Comm{0: nil, WorldID: world}}
}

// set records the communicator of an id in use.
func (s *identities) set(id uint32, c *Comm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[id] = c
}

// of returns the communicator with an id, or nil.
func (s *identities) of(id uint32) *Comm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[id]
}

// take marks id as used. It returns used if id was already used, and otherwise unused.
func (s *identities) take(id uint32) vote {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.used[id]; ok {
		return used
	}
	s.used[id] = nil
	return unused
}

// release frees an id that this process took but another member already uses.
func (s *identities) release(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, id)
}

// count returns the number of used ids.
func (s *identities) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.used)
}

// all returns the existing communicators, ordered by id.
func (s *identities) all() []*Comm {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Comm
	for _, id := range slices.Sorted(maps.Keys(s.used)) {
		if c := s.used[id]; c != nil {
			all = append(all, c)
		}
	}
	return all
}

// A lineage is a hash of the calls that led to a communicator.
type lineage uint64

// next returns the lineage of the nth child of l.
func (l lineage) next(n uint64) lineage {
	return lineage(mix64(uint64(l) + 0x9e3779b97f4a7c15*(n+1)))
}

// with returns the lineage of a common child of l and m.
func (l lineage) with(m lineage) lineage { return lineage(mix64(uint64(l) ^ mix64(uint64(m)))) }

// candidate returns the id to try at the kth attempt.
func (l lineage) candidate(k int) uint32 { return uint32(l.next(uint64(k)) >> 40) }

// mix64 is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A vote is the state of a candidate at one process, or at all processes. The greatest vote wins.
type vote byte

const (
	unused      vote = iota
	used             // some process uses the id
	invalidVote      // the processes vote about different communicators
)

// ballotSize is the length of a ballot in bytes. A ballot contains a vote and the lineage that the
// vote is about.
const ballotSize = 9

func ballot(l lineage, v vote) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(l)), byte(v))
}

// count returns the vote in a ballot, or invalidVote if the ballot is not about l.
func (l lineage) count(ballot []byte) vote {
	if binary.LittleEndian.Uint64(ballot) != uint64(l) {
		return invalidVote
	}
	return min(vote(ballot[8]), invalidVote)
}

// An agreement returns the combined vote of all participants, or an error if that vote is
// invalidVote.
type agreement func(l lineage, v vote) (vote, error)

// identify finds the id of the communicator with lineage l that is created from c, by agreement of
// all participants. Only one goroutine at a time calls it for c.
func (c *Comm) identify(l lineage, agree agreement) (uint32, error) {
	return c.identifyIn(ManagementSlot, l, agree)
}

// identifyIn is identify with the slot in which the replicas of this rank agree.
func (c *Comm) identifyIn(slot uint32, l lineage, agree agreement) (uint32, error) {
	for k := range attempts {
		id := l.candidate(k)
		mine, err := c.take(slot, id)
		if err != nil {
			return 0, err
		}
		all, err := agree(l, mine)
		if err == nil && all == unused {
			return id, nil
		}
		if mine == unused {
			c.process.ids.release(id)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no unused id for a communicator in %d attempts", attempts)
}

// take marks id as used if it is unused. If another goroutine creates a communicator at the same
// time, the result depends on timing, so the replicas of this rank agree on it.
func (c *Comm) take(slot, id uint32) (vote, error) {
	s := c.process.ids
	v, err := c.engine.Choose(c.Context(slot), func() uint64 { return uint64(s.take(id)) })
	if err == nil && vote(v) == unused {
		s.take(id) // has an effect at replicas that did not choose
	}
	return vote(v), err
}

// startMaking waits until no other communicator is being created from c. The caller then creates one
// and unlocks c.making.
func (c *Comm) startMaking() {
	c.making.Lock()
	if c.idups != nil {
		<-c.idups
	}
}

// descend returns the lineage of the next communicator created from c. The caller holds c.making.
func (c *Comm) descend() lineage {
	c.made++
	return c.lineage.next(c.made)
}

// managementTag is the tag of all messages in a management context. With a single tag, ranks that
// make different calls receive each other's messages and detect the wrong length.
const managementTag = 0

// swap sends to one rank and receives len(recv) bytes from another rank in the management context.
func (c *Comm) swap(send []byte, dest int, recv []byte, source int) error {
	return c.swapIn(ManagementSlot, send, dest, recv, source)
}

func (c *Comm) swapIn(slot uint32, send []byte, dest int, recv []byte, source int) error {
	return c.swapOver(c.Context(slot), managementTag, send, c.WorldRank(dest), recv, c.WorldRank(source))
}

// swapOver sends to one rank of the world and receives len(recv) bytes from another rank. It posts the
// receive first, so that all ranks may swap messages of any length at the same time.
func (c *Comm) swapOver(context uint32, tag int32, send []byte, dest int, recv []byte, source int) error {
	r, err := c.engine.Irecv(context, source, tag, recv)
	if err != nil {
		return err
	}
	if err := c.engine.Send(context, dest, tag, send, engineapi.Standard); err != nil {
		return err
	}
	s, err := c.engine.Wait(r)
	var truncated *engineapi.TruncateError
	if err == nil && s.Size != len(recv) || errors.As(err, &truncated) {
		err = fmt.Errorf("%w: received %d bytes, expected %d", errDifferentOrder, s.Size, len(recv))
	}
	return err
}

// every is the agreement of the ranks of c, which is not an intercommunicator.
func (c *Comm) every(l lineage, v vote) (vote, error) {
	all := electorate{comm: c, context: c.Context(ManagementSlot), tag: managementTag, members: c.NamedGroup().Members, rank: c.rank}
	return all.every(l, v)
}

// An electorate is a list of processes that vote.
type electorate struct {
	comm    *Comm // for its engine
	context uint32
	tag     int32
	members []int // world ranks
	rank    int   // index of this process in members
}

// every is the agreement of all members. After k steps, each member has the votes of the 2^k members
// before it. A member that finds a mismatch continues, so that all members get the result.
func (e electorate) every(l lineage, v vote) (vote, error) {
	size := len(e.members)
	for k := 1; k < size; k *= 2 {
		theirs := make([]byte, ballotSize)
		next, previous := e.members[(e.rank+k)%size], e.members[(e.rank-k+size)%size]
		err := e.comm.swapOver(e.context, e.tag, ballot(l, v), next, theirs, previous)
		switch {
		case err == nil:
			v = max(v, l.count(theirs))
		case errors.Is(err, errDifferentOrder):
			v = invalidVote
		default:
			return invalidVote, err
		}
	}
	if v == invalidVote {
		return v, errDifferentOrder
	}
	return v, nil
}

// gatherAll returns the numbers that all ranks of c pass, in rank order. All ranks pass the same
// count of numbers. gatherAll uses the algorithm of Bruck and others (1997): after k steps, each
// rank has the blocks of 2^k consecutive ranks, starting with its own.
func (c *Comm) gatherAll(mine ...int64) ([]int64, error) { return c.gatherAllIn(ManagementSlot, mine) }

func (c *Comm) gatherAllIn(slot uint32, mine []int64) ([]int64, error) {
	width := 8 * len(mine)
	b := make([]byte, 0, c.size*width)
	for _, v := range mine {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for k := 1; k < c.size; k *= 2 {
		count := min(k, c.size-k)
		b = b[:(k+count)*width]
		err := c.swapIn(slot, b[:count*width], (c.rank-k+c.size)%c.size, b[k*width:], (c.rank+k)%c.size)
		if err != nil {
			return nil, err
		}
	}
	all := make([]int64, c.size*len(mine))
	for i := range all {
		from := (8*i - c.rank*width + len(b)) % len(b)
		all[i] = int64(binary.LittleEndian.Uint64(b[from:]))
	}
	return all, nil
}
