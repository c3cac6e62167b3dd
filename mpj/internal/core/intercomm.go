package core

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// An intercommunicator connects two disjoint groups of processes. Rank and Size refer to the local
// group; messages address ranks of the remote group.
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

// IntercommCreate makes d an intercommunicator of the ranks of c, which are the local group, and the
// ranks of another communicator, which also call IntercommCreate. local becomes the communicator of
// the local group. The local leader is rank localLeader of c, and the remote leader is rank
// remoteLeader of peer; both leaders are members of peer. tag distinguishes simultaneous creations by
// the same two leaders. peer, remoteLeader and tag are significant at the leader only.
func IntercommCreate(c, d, local *Comm, localLeader int, peer *Comm, remoteLeader, tag int) error {
	if err := CheckLocalLeader(c, localLeader); err != nil {
		return err
	}
	c.startMaking()
	defer c.making.Unlock()
	l, group := c.descend(), c.NamedGroup()
	s := span{local: c, leader: localLeader, swap: func(send, recv []byte) error {
		return c.swapOver(peer.Context(LeaderSlot), int32(tag), send, peer.WorldRank(remoteLeader), recv, peer.WorldRank(remoteLeader))
	}}
	theirs, err := s.exchangeMembers(l, group, peer, remoteLeader, tag)
	if err != nil {
		return c.wrap(err)
	}
	remote := Group{Members: make([]int, len(theirs)-1), Self: group.Self}
	for i, m := range theirs[1:] {
		remote.Members[i] = int(m)
	}
	if common := group.Intersection(remote).Size(); common > 0 {
		return c.Failf(ErrComm, "%d processes are in both groups", common)
	}
	l = l.join(lineage(theirs[0]))
	id, err := c.identify(l, s.every)
	if err != nil {
		return c.wrap(err)
	}
	makeInter(c, d, local, id, l, group.Members, remote.Members)
	return nil
}

// CheckLocalLeader returns an error if c cannot be the local group of a new intercommunicator, or
// localLeader is not one of its ranks.
func CheckLocalLeader(c *Comm, localLeader int) error {
	if err := c.CheckIntra(); err != nil {
		return err
	}
	if localLeader < 0 || localLeader >= c.size {
		return c.Failf(ErrRank, "localLeader %d, ranks are 0..%d", localLeader, c.size-1)
	}
	return nil
}

// exchangeMembers returns the lineage and the members of the remote group at every rank of the local
// group.
func (s span) exchangeMembers(l lineage, group Group, peer *Comm, remoteLeader, tag int) ([]int64, error) {
	var theirs []int64
	var failed error
	if s.local.rank == s.leader {
		theirs, failed = s.introduce(l, group, peer, remoteLeader, tag)
	}
	theirs, err := share(s.local, theirs, s.leader)
	if err != nil || failed != nil {
		return nil, errors.Join(failed, err)
	}
	if len(theirs) == 0 {
		return nil, s.local.Failf(ErrComm, "the local leader, rank %d, did not reach the remote leader", s.leader)
	}
	return theirs, nil
}

// introduce exchanges lineage and members with the remote leader.
func (s span) introduce(l lineage, group Group, peer *Comm, remoteLeader, tag int) ([]int64, error) {
	if err := peer.CheckDest(remoteLeader, tag); err != nil {
		return nil, err
	}
	size := int64(s.local.process.size)
	if peer.process != s.local.process {
		return nil, s.local.Failf(ErrComm, "peer communicator %q belongs to another world", peer.Name())
	}
	if remoteLeader == ProcNull || peer.local == nil && remoteLeader == peer.rank {
		return nil, s.local.Failf(ErrRank, "remoteLeader %d is not another process of peer", remoteLeader)
	}
	mine := []int64{int64(l)}
	for _, m := range group.Members {
		mine = append(mine, int64(m))
	}
	length := []int64{0}
	if err := s.swap(bytesOf([]int64{int64(len(mine))}), bytesOf(length)); err != nil {
		return nil, err
	}
	if n := length[0]; n < 2 || n > size+1 {
		return nil, errDifferentOrder
	}
	theirs := make([]int64, length[0])
	if err := s.swap(bytesOf(mine), bytesOf(theirs)); err != nil {
		return nil, err
	}
	for _, m := range theirs[1:] {
		if m < 0 || m >= size {
			return nil, errDifferentOrder
		}
	}
	return theirs, nil
}

// bytesOf returns the memory of numbers as a message. Messages are little-endian, as the memory of
// every machine on which processes run.
func bytesOf(numbers []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), 8*len(numbers))
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

// makeInter makes x the intercommunicator with the given id and groups of world ranks, and d the
// communicator of its local group.
func makeInter(c, x, d *Comm, id uint32, l lineage, local, remote []int) {
	equipInter(c, x, d, l, local, remote)
	enter(x, id)
}

// equipInter is makeInter for an intercommunicator that has no id yet.
func equipInter(c, x, d *Comm, l lineage, local, remote []int) {
	equip(c, d, l, local)
	x.engine, x.process, x.lineage = c.engine, c.process, l
	x.local, x.rank, x.size, x.handler = d, d.rank, d.size, d.handler
	address(x, remote)
}

// spanOf returns the span of intercommunicator c. The leader of each group is its rank 0.
func spanOf(c *Comm) span {
	return span{local: c.local, swap: func(send, recv []byte) error { return c.swap(send, 0, recv, 0) }}
}

// Merge makes d a communicator of both groups of intercommunicator c. All ranks of a group pass the
// same value of high: the group that passes true comes second. If both groups pass the same value,
// the group whose rank 0 has the lower world rank comes first. All ranks of c call Merge.
func Merge(c, d *Comm, high bool) error {
	if err := c.CheckInter(); err != nil {
		return err
	}
	c.startMaking()
	defer c.making.Unlock()
	l := c.descend()
	var flag int64
	if high {
		flag = 1
	}
	all, err := c.local.gatherAll(flag)
	if err != nil {
		return c.wrap(err)
	}
	theirs, err := tellHigh(c, all)
	if err != nil {
		return c.wrap(err)
	}
	low, up := c.local.NamedGroup().Members, c.NamedGroup().Members
	if flag > theirs || flag == theirs && up[0] < low[0] {
		low, up = up, low
	}
	id, err := c.identify(l, spanOf(c).every)
	if err != nil {
		return c.wrap(err)
	}
	makeChild(c, d, id, l, slices.Concat(low, up))
	return nil
}

// tellHigh sends the remote group the value of high that all local ranks passed, and returns the
// value of the remote group.
func tellHigh(c *Comm, all []int64) (int64, error) {
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
	theirs, err := share(c.local, theirs, 0)
	switch {
	case err != nil || failed != nil:
		return 0, errors.Join(failed, err)
	case odd >= 0:
		return 0, c.Failf(ErrArg, "ranks 0 and %d of the local group pass different values of high", odd)
	case len(theirs) != 1 || theirs[0] == disagreed:
		return 0, c.Failf(ErrArg, "the ranks of the remote group pass different values of high")
	}
	return theirs[0], nil
}

// disagreed replaces high if the ranks of a group pass different values.
const disagreed = -1

// share returns root's numbers at every rank of c. It sends the numbers along a binomial tree rooted
// at root.
func share(c *Comm, numbers []int64, root int) ([]int64, error) {
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
		if b, _, err = c.engine.RecvWhole(c.Context(ManagementSlot), c.WorldRank(parent), managementTag); err != nil {
			return nil, err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit >= c.size {
			continue
		}
		child := (v + bit + root) % c.size
		if err := c.engine.Send(c.Context(ManagementSlot), c.WorldRank(child), managementTag, b, engineapi.Standard); err != nil {
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
