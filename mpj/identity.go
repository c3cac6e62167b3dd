package mpj

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/words"
)

// How a communicator gets its id, which no other one has at any of its members.
//
// Ids are not numbered: two goroutines that make communicators at the same time
// would number them differently at different ranks, and at different replicas
// of one rank. An id is a function of what made it: of the lineage of the
// parent, which is a hash of where it came from itself, and of how many
// communicators the parent has made before. All members know both. As 24 bits
// are few, two lineages may meet in one id: so each member looks whether it
// has the id already, and all agree that none has, or try the next candidate.
//
// The communicators that one Split makes share their id: they have no member
// in common. An id is used once in the life of a job, so that no message of a
// communicator that was freed can appear in another.

// errUnlike is the error of ranks that do not make the same calls.
var errUnlike = errors.New("the ranks make communicators in different order")

// attempts bounds how many candidates are tried for one communicator. When a
// process has used half of all ids, 2 tries are needed on average.
const attempts = 64

// An identities is the set of ids that this process has used, each with the
// communicator that has it, or nil: not made yet, freed, or the engine's.
type identities struct {
	mu   sync.Mutex
	used map[uint32]*Comm
}

func newIdentities(world *Comm) *identities {
	return &identities{used: map[uint32]*Comm{0: nil, worldID: world}}
}

// set says which communicator has an id that is in use.
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

// take takes id if it is unused, and says whether it was.
func (s *identities) take(id uint32) vote {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.used[id]; ok {
		return used
	}
	s.used[id] = nil
	return unused
}

// release gives back an id that this process took and another member has in
// use.
func (s *identities) release(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, id)
}

// A lineage is a hash of the calls that led to a communicator.
type lineage uint64

// next returns the lineage of the nth thing that is made of l.
func (l lineage) next(n uint64) lineage {
	return lineage(scramble(uint64(l) + 0x9e3779b97f4a7c15*(n+1)))
}

// with returns the lineage of what is made of l and m together.
func (l lineage) with(m lineage) lineage { return lineage(scramble(uint64(l) ^ scramble(uint64(m)))) }

// candidate returns the id that is tried at the kth attempt.
func (l lineage) candidate(k int) uint32 { return uint32(l.next(uint64(k)) >> 40) }

// scramble is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A vote is what a process says, or all say, of a candidate. The greatest of
// all votes counts.
type vote byte

const (
	unused  vote = iota
	used         // somewhere
	spoiled      // the processes are not about the same thing
)

// A ballot is a vote on its way, and the lineage that it is about.

const ballotSize = 9

func ballot(l lineage, v vote) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(l)), byte(v))
}

// count returns the vote of a ballot, which has to be about l.
func (l lineage) count(ballot []byte) vote {
	if binary.LittleEndian.Uint64(ballot) != uint64(l) {
		return spoiled
	}
	return min(vote(ballot[8]), spoiled)
}

// An agreement returns the vote of all that take part. It is an error when that
// is spoiled.
type agreement func(l lineage, v vote) (vote, error)

// identify finds the id of the communicator with lineage l that is made of c,
// among all that take part in the agreement. c.making is held.
func (c *Comm) identify(l lineage, agree agreement) (uint32, error) {
	w := c.world
	for k := range attempts {
		id := l.candidate(k)
		mine, err := c.take(id)
		if err != nil {
			return 0, err
		}
		all, err := agree(l, mine)
		if err == nil && all == unused {
			return id, nil
		}
		if mine == unused {
			w.identities.release(id)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no unused id for a communicator in %d attempts", attempts)
}

// take takes id if it is unused. When another goroutine makes a communicator at
// the same time, that depends on timing: so the replicas of this rank agree.
func (c *Comm) take(id uint32) (vote, error) {
	s := c.world.identities
	v, err := c.engine.Choose(c.context(managementSlot), func() uint64 { return uint64(s.take(id)) })
	if err == nil && vote(v) == unused {
		s.take(id) // at a replica that did not choose
	}
	return vote(v), err
}

// descend returns the lineage of the next communicator that c makes. c.making
// is held.
func (c *Comm) descend() lineage {
	c.made++
	return c.lineage.next(c.made)
}

// managementTag is the tag of all messages in a management context. That there
// is one only makes ranks that make different calls see each other's messages,
// and know it by their length.
const managementTag = 0

// swap sends to one rank and receives len(recv) bytes from another in the
// management context.
func (c *Comm) swap(send []byte, dest int, recv []byte, source int) error {
	return c.swapIn(managementSlot, send, dest, recv, source)
}

func (c *Comm) swapIn(slot uint32, send []byte, dest int, recv []byte, source int) error {
	return c.world.swap(c.context(slot), managementTag, send, c.worldRank(dest), recv, c.worldRank(source))
}

// swap sends to one rank of the world and receives len(recv) bytes from
// another. Both may do so at once whatever the length.
func (w *World) swap(context uint32, tag int32, send []byte, dest int, recv []byte, source int) error {
	r, err := w.engine.Irecv(context, source, tag, recv)
	if err != nil {
		return err
	}
	if err := w.engine.Send(context, dest, tag, send, words.Standard); err != nil {
		return err
	}
	s, err := w.engine.Wait(r)
	var truncated *words.TruncateError
	if err == nil && s.Size != len(recv) || errors.As(err, &truncated) {
		err = fmt.Errorf("%w: %d bytes came where %d are expected", errUnlike, s.Size, len(recv))
	}
	return err
}

// every is the agreement of the ranks of c, of the local group when c is an
// intercommunicator: after k steps each rank has the votes of the 2^k ranks
// before it. A rank that learns of unlike calls goes on, so that all do.
func (c *Comm) every(l lineage, v vote) (vote, error) {
	for k := 1; k < c.size; k *= 2 {
		theirs := make([]byte, ballotSize)
		err := c.swap(ballot(l, v), (c.rank+k)%c.size, theirs, (c.rank-k+c.size)%c.size)
		switch {
		case err == nil:
			v = max(v, l.count(theirs))
		case errors.Is(err, errUnlike):
			v = spoiled
		default:
			return spoiled, err
		}
	}
	if v == spoiled {
		return v, errUnlike
	}
	return v, nil
}

// gatherAll returns the equally many numbers that each rank of c gives, in rank
// order (Bruck and others, 1997): after k steps each rank has the blocks of
// the 2^k ranks from itself on.
func (c *Comm) gatherAll(mine ...int64) ([]int64, error) { return c.gatherAllIn(managementSlot, mine) }

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
