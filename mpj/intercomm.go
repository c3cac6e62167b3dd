package mpj

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// An intercommunicator connects two disjoint groups of processes. Rank and Size refer to the local
// group; messages address ranks of the remote group. An intercommunicator supports point-to-point
// messages, Dup, Split, Create, Merge and Free. For collectives, Merge it into an ordinary
// communicator.
//
//	local group          remote group
//	0  1  2 -- Send(c, b, 1) --> 0  1

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
	invalid := errorOf(op, core.CheckLocalLeader(&c.base, localLeader))
	if c.world.checks {
		k := alikeCall("localLeader %d", localLeader)
		if c.Rank() == localLeader {
			k.Own = fmt.Sprintf("remoteLeader %d, tag %d", remoteLeader, tag)
		}
		invalid = c.agree(op, k, invalid)
	}
	if invalid != nil {
		return nil, invalid
	}
	d, local := c.heir(), c.heir()
	err := core.IntercommCreate(&c.base, &d.base, &local.base, localLeader, peer.core(), remoteLeader, tag)
	return c.created(op, d, err == nil, err)
}

// createInter creates an intercommunicator from intercommunicator c in function op, whose arguments own
// describes.
func (c *Comm) createInter(op, own string, create func(d, local *core.Comm) (bool, error)) (*Comm, error) {
	if err := c.check(op); err != nil {
		return nil, err
	}
	if err := c.agree(op, plainCall(own), nil); err != nil {
		return nil, err
	}
	d, local := c.heir(), c.heir()
	member, err := create(&d.base, &local.base)
	return c.created(op, d, member, err)
}

// TestInter reports whether c is an intercommunicator.
func (c *Comm) TestInter() bool { return c.base.Local() != nil }

// RemoteSize returns the number of ranks in the remote group of an intercommunicator, and 0 for any
// other communicator.
func (c *Comm) RemoteSize() int {
	if !c.TestInter() {
		return 0
	}
	return c.base.Addressable()
}

// RemoteGroup returns the remote group of an intercommunicator, and GroupEmpty for any other
// communicator.
func (c *Comm) RemoteGroup() Group {
	if !c.TestInter() {
		return GroupEmpty
	}
	return c.namedGroup()
}

// Merge creates a communicator of both groups of intercommunicator c. All ranks of a group pass the
// same value of high: the group that passes true comes second. If both groups pass the same value,
// the group whose rank 0 has the lower world rank comes first. All ranks of c call Merge.
func (c *Comm) Merge(high bool) (*Comm, error) {
	if err := c.core().CheckInter(); err != nil {
		return nil, errorOf("Merge", err)
	}
	if c.world.checks {
		if err := c.agree("Merge", plainCall(fmt.Sprintf("high %t", high)), nil); err != nil {
			return nil, err
		}
	}
	d := c.heir()
	err := core.Merge(&c.base, &d.base, high)
	return c.created("Merge", d, err == nil, err)
}
