package mpj

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// An intercommunicator connects two disjoint groups of processes. Rank and Size refer to the local
// group; messages address ranks of the remote group. An intercommunicator supports point-to-point
// messages, Dup, Merge and Free. For collectives, Merge it into an ordinary communicator.
//
//	local group          remote group
//	0  1  2 -- Send(c, b, 1) --> 0  1
//
// All its processes reach agreement through two of them, called leaders as in MPI: first within each
// group, then between the leaders, and then within each group again.

// A span connects the local group with a remote group for the duration of a call.
type span struct {
	local  *Comm
	leader int // rank in local
	// swap sends to the remote leader and receives from it. Only the local leader calls swap.
	swap func(send, recv []byte) error
}

// IntercommCreate creates an intercommunicator of the ranks of c, which are the local group, and the
// ranks of another communicator, which also call IntercommCreate. The local leader is rank
// localLeader of c, and the remote leader is rank remoteLeader of peer; both leaders are members of
// peer. tag distinguishes simultaneous creations by the same two leaders. peer, remoteLeader and tag
// are significant at the leader only.
func (c *Comm) IntercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	const op = "IntercommCreate"
	if err := c.checkIntra(op); err != nil {
		return nil, err
	}
	var invalid error
	if localLeader < 0 || localLeader >= c.size {
		invalid = c.failf(ErrRank, op, "localLeader %d, ranks are 0..%d", localLeader, c.size-1)
	}
	if c.world.checks {
		k := alikeCall("localLeader %d", localLeader)
		if c.rank == localLeader {
			k.Own = fmt.Sprintf("remoteLeader %d, tag %d", remoteLeader, tag)
		}
		invalid = c.agree(op, k, invalid)
	}
	if invalid != nil {
		return nil, invalid
	}
	d, err := c.intercommCreate(localLeader, peer, remoteLeader, tag)
	return d, c.wrap(op, err)
}

func (c *Comm) intercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	c.making.Lock()
	defer c.making.Unlock()
	l, local := c.descend(), c.namedGroup()
	s := span{local: c, leader: localLeader, swap: func(send, recv []byte) error {
		return c.world.swap(peer.context(leaderSlot), int32(tag), send, peer.worldRank(remoteLeader), recv, peer.worldRank(remoteLeader))
	}}
	var told []int64
	var failed error
	if c.rank == localLeader {
		told, failed = s.introduce(l, local, peer, remoteLeader, tag)
	}
	told, err := c.share(told, localLeader)
	if err != nil || failed != nil {
		return nil, errors.Join(failed, err)
	}
	if len(told) == 0 {
		return nil, failf(ErrComm, "IntercommCreate", "the local leader, rank %d, did not reach the remote leader", localLeader)
	}
	remote := Group{members: make([]int, len(told)-1), self: local.self}
	for i, m := range told[1:] {
		remote.members[i] = int(m)
	}
	if common := local.Intersection(remote).Size(); common > 0 {
		return nil, failf(ErrComm, "IntercommCreate", "%d processes are in both groups", common)
	}
	l = l.join(lineage(told[0]))
	id, err := c.identify(l, s.every)
	if err != nil {
		return nil, err
	}
	return c.interOf(id, l, local.members, remote.members), nil
}

// introduce exchanges lineage and members with the remote leader.
func (s span) introduce(l lineage, local Group, peer *Comm, remoteLeader, tag int) ([]int64, error) {
	if err := peer.checkDest("IntercommCreate", remoteLeader, tag); err != nil {
		return nil, err
	}
	if peer.world != s.local.world {
		return nil, failf(ErrComm, "IntercommCreate", "peer communicator %q belongs to another world", peer.Name())
	}
	if remoteLeader == ProcNull || peer.local == nil && remoteLeader == peer.rank {
		return nil, failf(ErrRank, "IntercommCreate", "remoteLeader %d is not another process of peer", remoteLeader)
	}
	mine := []int64{int64(l)}
	for _, m := range local.members {
		mine = append(mine, int64(m))
	}
	length := []int64{0}
	if err := s.swap(bytesOf([]int64{int64(len(mine))}), bytesOf(length)); err != nil {
		return nil, err
	}
	if n := length[0]; n < 2 || n > int64(s.local.world.size)+1 {
		return nil, errDifferentOrder
	}
	theirs := make([]int64, length[0])
	if err := s.swap(bytesOf(mine), bytesOf(theirs)); err != nil {
		return nil, err
	}
	for _, m := range theirs[1:] {
		if m < 0 || m >= int64(s.local.world.size) {
			return nil, errDifferentOrder
		}
	}
	return theirs, nil
}

// join returns the lineage of a common child of l and m, which does not depend on the order of l and
// m.
func (l lineage) join(m lineage) lineage { return min(l, m).with(max(l, m)) }

// every is the agreement of both groups.
func (s span) every(l lineage, v vote) (vote, error) {
	v, err := s.local.every(l, v)
	if err != nil && !errors.Is(err, errDifferentOrder) {
		return v, err
	}
	var failed error
	if s.local.rank == s.leader {
		theirs := make([]byte, ballotSize)
		if failed = s.swap(ballot(l, v), theirs); failed == nil {
			v = max(v, l.count(theirs))
		} else {
			v = invalidVote
		}
	}
	v, err = s.local.every(l, v)
	return v, errors.Join(failed, err)
}

// interOf returns the intercommunicator with the given id and groups of world ranks. It inherits
// the error handler of c.
func (c *Comm) interOf(id uint32, l lineage, local, remote []int) *Comm {
	d := c.child(id, l, local)
	x := &Comm{engine: c.engine, world: c.world, id: id, lineage: l, errhandler: d.errhandler, local: d, rank: d.rank, size: d.size}
	x.address(remote)
	c.world.identities.set(id, x)
	return x
}

// TestInter reports whether c is an intercommunicator.
func (c *Comm) TestInter() bool { return c.local != nil }

// RemoteSize returns the number of ranks in the remote group of an intercommunicator, and 0 for any
// other communicator.
func (c *Comm) RemoteSize() int {
	if c.local == nil {
		return 0
	}
	return c.named
}

// RemoteGroup returns the remote group of an intercommunicator, and GroupEmpty for any other
// communicator.
func (c *Comm) RemoteGroup() Group {
	if c.local == nil {
		return GroupEmpty
	}
	return c.namedGroup()
}

// span returns the span of intercommunicator c. The leader of each group is its rank 0.
func (c *Comm) span() span {
	return span{local: c.local, swap: func(send, recv []byte) error { return c.swap(send, 0, recv, 0) }}
}

// Merge creates a communicator of both groups of intercommunicator c. All ranks of a group pass the
// same value of high: the group that passes true comes second. If both groups pass the same value,
// the group whose rank 0 has the lower world rank comes first. All ranks of c call Merge.
func (c *Comm) Merge(high bool) (*Comm, error) {
	if err := c.check("Merge"); err != nil {
		return nil, err
	}
	if c.local == nil {
		return nil, c.failf(ErrComm, "Merge", "communicator %q is not an intercommunicator", c.Name())
	}
	if c.world.checks {
		if err := c.agree("Merge", plainCall(fmt.Sprintf("high %t", high)), nil); err != nil {
			return nil, err
		}
	}
	d, err := c.merge(high)
	return d, c.wrap("Merge", err)
}

func (c *Comm) merge(high bool) (*Comm, error) {
	c.making.Lock()
	defer c.making.Unlock()
	l := c.descend()
	var flag int64
	if high {
		flag = 1
	}
	all, err := c.local.gatherAll(flag)
	if err != nil {
		return nil, err
	}
	theirs, err := c.tellHigh(all)
	if err != nil {
		return nil, err
	}
	low, up := c.local.namedGroup().members, c.namedGroup().members
	if flag > theirs || flag == theirs && up[0] < low[0] {
		low, up = up, low
	}
	id, err := c.identify(l, c.span().every)
	if err != nil {
		return nil, err
	}
	return c.child(id, l, slices.Concat(low, up)), nil
}

// tellHigh sends the remote group the value of high that all local ranks passed, and returns the
// value of the remote group.
func (c *Comm) tellHigh(all []int64) (int64, error) {
	mine, theirs := all[:1], make([]int64, 1)
	odd := slices.IndexFunc(all, func(flag int64) bool { return flag != all[0] })
	if odd >= 0 {
		mine = []int64{disagreed}
	}
	var failed error
	if c.rank == 0 {
		if failed = c.swap(bytesOf(mine), 0, bytesOf(theirs), 0); failed != nil {
			theirs[0] = disagreed
		}
	}
	theirs, err := c.local.share(theirs, 0)
	switch {
	case err != nil || failed != nil:
		return 0, errors.Join(failed, err)
	case odd >= 0:
		return 0, failf(ErrArg, "Merge", "ranks 0 and %d of the local group pass different values of high", odd)
	case len(theirs) != 1 || theirs[0] == disagreed:
		return 0, failf(ErrArg, "Merge", "the ranks of the remote group pass different values of high")
	}
	return theirs[0], nil
}

// disagreed replaces high if the ranks of a group pass different values.
const disagreed = -1

// share returns root's numbers at every rank of c. It sends the numbers along a binomial tree rooted
// at root.
func (c *Comm) share(numbers []int64, root int) ([]int64, error) {
	if c.size == 1 {
		return numbers, nil
	}
	v := (c.rank - root + c.size) % c.size
	b, bit := bytesOf(numbers), 1
	for ; bit < c.size && v&bit == 0; bit *= 2 {
	}
	if v != 0 {
		var err error
		parent := (v&(v-1) + root) % c.size
		if b, _, err = c.engine.RecvWhole(c.context(managementSlot), c.worldRank(parent), managementTag); err != nil {
			return nil, err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit >= c.size {
			continue
		}
		child := (v + bit + root) % c.size
		if err := c.engine.Send(c.context(managementSlot), c.worldRank(child), managementTag, b, engineapi.Standard); err != nil {
			return nil, err
		}
	}
	if len(b)%8 != 0 {
		return nil, errDifferentOrder
	}
	shared := make([]int64, len(b)/8)
	copy(bytesOf(shared), b)
	return shared, nil
}
