package mpj

import (
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// checkVariable is the environment variable that turns on checks. With P2PMPI_CHECK=1 at all ranks,
// the ranks of a communicator compare their calls before each collective, and before they create a
// new communicator. Rank 0 gathers the calls, judges them with package calls, and broadcasts the
// verdict:
//
//	rank 1..n-1            rank 0
//	    |-- call, arguments -->|  Judge
//	    |<-- verdict ----------|  broadcast along a tree; all ranks fail, or none fails
//
// Blocking and nonblocking calls are compared in program order, in a separate context. A nonblocking
// call is compared in the background, before it starts. The comparison makes every collective wait
// for all ranks, as MPI allows, and changes no result. Before a reduction, each rank also checks its
// operation (divisible.go).
const checkVariable = proclink.CheckVariable

// checksWanted reports whether the environment variable turns checks on.
func checksWanted() (bool, error) {
	switch v := os.Getenv(checkVariable); v {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	default:
		return false, failf(ErrArg, "Init", "%s=%q: want 1 or 0", checkVariable, v)
	}
}

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

// agree compares call with the calls of the other ranks, if checks are on. invalid is the reason why
// this rank rejects its arguments, or nil; agree returns it after it has sent the reason to the
// other ranks. For a nonblocking call, agree only starts the comparison.
func (c *Comm) agree(op string, call calls.Call, invalid error) error {
	if !c.world.checks {
		return invalid
	}
	return c.agreeOn(op, call, invalid)
}

func (c *Comm) agreeOn(op string, call calls.Call, invalid error) error {
	call.Op, call.Where = op, core.Caller()
	if invalid != nil {
		call.Invalid = invalid.Error()
	}
	x := &comparison{done: make(chan struct{}), call: call.Within(c.title())}
	c.mu.Lock()
	x.before, c.compared = c.compared, x
	c.mu.Unlock()
	if isImmediate(op) {
		c.engine().Go(func() { c.compare(x, call) }) // runs until all ranks have sent their calls, or the engine stops
		return invalid
	}
	c.calls(collectiveSlot, x.call)
	c.compare(x, call)
	if invalid != nil {
		return invalid
	}
	return c.wrap(op, x.err)
}

// lastCompared returns the comparison of the current call, or nil without checks.
func (c *Comm) lastCompared() *comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compared
}

// isImmediate reports whether op is nonblocking.
func isImmediate(op string) bool { return op[0] == 'I' && op != "IntercommCreate" }

// compare carries out x.
func (c *Comm) compare(x *comparison, call calls.Call) {
	defer close(x.done)
	if x.before != nil {
		x.before.wait() // regardless of its outcome
		x.before = nil
	}
	c.calls(checkSlot, x.call)
	d, err := c.verdict(call)
	if err == nil && d.Kind != calls.Nothing {
		err = failf(classOf(d.Kind), call.Op, "in communicator %q %s", c.Name(), d.Text)
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
func (c *Comm) verdict(mine calls.Call) (calls.Difference, error) {
	group := c
	if c.local() != nil {
		group = c.local()
	}
	b, err := calls.Encode(mine)
	if err != nil {
		return calls.Difference{}, err
	}
	var said []byte
	if group.Rank() != 0 {
		if err = c.engine().Send(group.context(checkSlot), group.worldRank(0), checkTag, b, engineapi.Standard); err != nil {
			return calls.Difference{}, err
		}
	} else if said, err = c.judge(group, mine); err != nil {
		return calls.Difference{}, err
	}
	t := group.team(checkSlot)
	if said, err = t.BcastWhole(said, 0); err != nil {
		return calls.Difference{}, err
	}
	return calls.DecodeDifference(said)
}

// checkTag is the tag of the messages with calls to compare.
const checkTag = 0

// judge returns the verdict on the calls of all ranks. Rank 0 calls it.
func (c *Comm) judge(group *Comm, mine calls.Call) ([]byte, error) {
	all := []calls.Call{mine}
	for i := 1; i < group.Size(); i++ {
		theirs, err := group.callOf(i)
		if err != nil {
			return nil, err
		}
		all = append(all, theirs)
	}
	if c.local() == nil {
		return calls.EncodeDifference(calls.Judge(all, rankName))
	}
	return c.judgeGroups(all)
}

// callOf receives the call of a rank of c.
func (c *Comm) callOf(rank int) (calls.Call, error) {
	b, _, err := c.engine().RecvWhole(c.context(checkSlot), c.worldRank(rank), checkTag)
	if err != nil {
		return calls.Call{}, err
	}
	return calls.Decode(b)
}

// judgeGroups returns the verdict for intercommunicator c. Each group compares the calls of its
// ranks, and the first ranks of the two groups compare their calls.
func (c *Comm) judgeGroups(local []calls.Call) ([]byte, error) {
	d := calls.Judge(local, rankName)
	b, err := calls.Encode(local[0])
	if err != nil {
		return nil, err
	}
	r, err := c.engine().Isend(c.context(checkSlot), c.worldRank(0), checkTag, b, engineapi.Standard)
	if err != nil {
		return nil, err
	}
	theirs, err := c.callOf(0)
	if err != nil {
		return nil, err
	}
	if _, err := c.engine().Wait(r); err != nil {
		return nil, err
	}
	if d.Kind == calls.Nothing {
		d = calls.Judge([]calls.Call{local[0], theirs}, func(i int) string {
			return [...]string{"rank 0 of the local group", "rank 0 of the remote group"}[i]
		})
	}
	return calls.EncodeDifference(d)
}
