package core

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// With checks, the ranks of a communicator compare their calls before each collective, and before
// they create a new communicator. Rank 0 gathers the calls, judges them with package calls, and
// broadcasts the verdict:
//
//	rank 1..n-1            rank 0
//	    |-- call, arguments -->|  Judge
//	    |<-- verdict ----------|  broadcast along a tree; all ranks fail, or none fails
//
// Blocking and nonblocking calls are compared in program order, in a separate context. A nonblocking
// call is compared in the background, before it starts. The comparison makes every collective wait
// for all ranks, as MPI allows, and changes no result. Before a reduction, each rank also checks its
// operation (divisible.go).

// A comparison compares one call on a communicator with the calls of the other ranks.
type comparison struct {
	before *comparison // comparison of the previous call; nil if it is done or did not exist
	done   chan struct{}
	err    error  // outcome; valid after done is closed
	call   string // description for reports
}

// wait returns the outcome of the comparison. Without checks, x is nil.
func (x *comparison) wait() error {
	if x == nil {
		return nil
	}
	<-x.done
	return x.err
}

// Agree compares call, which is a call of the program's function name, with the calls of the other
// ranks of c, if checks are on. invalid is the reason why this rank rejects its arguments, or nil;
// Agree returns it after it has sent the reason to the other ranks. For a nonblocking call, Agree
// only starts the comparison.
func Agree(c *Comm, name string, call calls.Call, invalid error) error {
	if !c.process.checks {
		return invalid
	}
	return agreeOn(c, name, call, invalid)
}

func agreeOn(c *Comm, name string, call calls.Call, invalid error) error {
	call.Op, call.Where = name, Caller()
	if invalid != nil {
		call.Invalid = invalid.Error()
	}
	x := &comparison{done: make(chan struct{}), call: call.Within(c.Title())}
	c.mu.Lock()
	x.before, c.compared = c.compared, x
	c.mu.Unlock()
	if isImmediate(name) {
		c.engine.Go(func() { compare(c, x, call) }) // runs until all ranks have sent their calls, or the engine stops
		return invalid
	}
	record(c, CollectiveSlot, x.call)
	compare(c, x, call)
	if invalid != nil {
		return invalid
	}
	return c.wrap(x.err)
}

// lastCompared returns the comparison of the current call, or nil without checks.
func lastCompared(c *Comm) *comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compared
}

// isImmediate reports whether the function name is nonblocking.
func isImmediate(name string) bool { return name[0] == 'I' && name != "IntercommCreate" }

// compare carries out x.
func compare(c *Comm, x *comparison, call calls.Call) {
	defer close(x.done)
	if x.before != nil {
		x.before.wait() // regardless of its outcome
		x.before = nil
	}
	record(c, CheckSlot, x.call)
	d, err := verdict(c, call)
	if err == nil && d.Kind != calls.Nothing {
		e := c.Failf(classOf(d.Kind), "in communicator %q %s", c.Name(), d.Text)
		e.Call, err = call.Op, e
	}
	x.err = err
}

// classOf returns the error class for a kind of difference between calls.
func classOf(k calls.Kind) Class {
	switch k {
	case calls.Roots:
		return ErrRoot
	case calls.Types:
		return ErrType
	case calls.Counts:
		return ErrCount
	case calls.Places:
		return ErrBuffer
	case calls.Operations:
		return ErrOp
	case calls.Arguments, calls.Validity:
		return ErrArg
	}
	return ErrComm
}

// verdict returns the difference between the calls of all ranks of c. On an intercommunicator, the
// first ranks of the two groups also exchange and compare their calls.
func verdict(c *Comm, mine calls.Call) (calls.Difference, error) {
	group := c
	if c.local != nil {
		group = c.local
	}
	b, err := calls.Encode(mine)
	if err != nil {
		return calls.Difference{}, err
	}
	var said []byte
	if group.rank != 0 {
		if err = c.engine.Send(group.Context(CheckSlot), group.WorldRank(0), checkTag, b, engineapi.Standard); err != nil {
			return calls.Difference{}, err
		}
	} else if said, err = judge(c, group, mine); err != nil {
		return calls.Difference{}, err
	}
	t := teamOf(group, CheckSlot)
	if said, err = t.BcastWhole(said, 0); err != nil {
		return calls.Difference{}, err
	}
	return calls.DecodeDifference(said)
}

// checkTag is the tag of the messages with calls to compare.
const checkTag = 0

// judge returns the verdict on the calls of all ranks. Rank 0 calls it.
func judge(c, group *Comm, mine calls.Call) ([]byte, error) {
	all := []calls.Call{mine}
	for i := 1; i < group.size; i++ {
		theirs, err := callOf(group, i)
		if err != nil {
			return nil, err
		}
		all = append(all, theirs)
	}
	if c.local == nil {
		return calls.EncodeDifference(calls.Judge(all, rankName))
	}
	return judgeGroups(c, all)
}

// callOf receives the call of a rank of c.
func callOf(c *Comm, rank int) (calls.Call, error) {
	b, _, err := c.engine.RecvWhole(c.Context(CheckSlot), c.WorldRank(rank), checkTag)
	if err != nil {
		return calls.Call{}, err
	}
	return calls.Decode(b)
}

// judgeGroups returns the verdict for intercommunicator c. Each group compares the calls of its
// ranks, and the first ranks of the two groups compare their calls.
func judgeGroups(c *Comm, local []calls.Call) ([]byte, error) {
	d := calls.Judge(local, rankName)
	b, err := calls.Encode(local[0])
	if err != nil {
		return nil, err
	}
	r, err := c.engine.Isend(c.Context(CheckSlot), c.WorldRank(0), checkTag, b, engineapi.Standard)
	if err != nil {
		return nil, err
	}
	theirs, err := callOf(c, 0)
	if err != nil {
		return nil, err
	}
	if _, err := c.engine.Wait(r); err != nil {
		return nil, err
	}
	if d.Kind == calls.Nothing {
		d = calls.Judge([]calls.Call{local[0], theirs}, func(i int) string {
			return [...]string{"rank 0 of the local group", "rank 0 of the remote group"}[i]
		})
	}
	return calls.EncodeDifference(d)
}

func rankName(rank int) string { return fmt.Sprintf("rank %d", rank) }

// record records the collective that uses a slot from now on. It is called only with checks.
func record(c *Comm, slot uint32, call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.called == nil {
		c.called = make(map[uint32]string)
	}
	c.called[slot] = call
}

// Record records call, which is a call of the program's function name and which c does not compare,
// as the one that uses a slot from now on. It is called only with checks.
func Record(c *Comm, slot uint32, name string, call calls.Call) {
	call.Op, call.Where = name, Caller()
	record(c, slot, call.Within(c.Title()))
}

// CalledIn returns the collective that uses a slot of c. Blocking collectives use several slots, but
// only one runs at a time, so they are all recorded under CollectiveSlot. Idup and CreateGroup are
// recorded under the slots that they use.
func CalledIn(c *Comm, slot uint32) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.called[slot]
	if slot < OperationSlot && slot != CheckSlot {
		call = cmp.Or(call, c.called[CollectiveSlot])
	}
	return cmp.Or(call, "a collective of a communicator")
}
