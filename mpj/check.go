package mpj

import (
	"bytes"
	"cmp"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// With P2PMPI_CHECK=1 in the environment of all ranks, the ranks of a
// communicator compare their calls before each collective: which one it is,
// and its root. It then makes every collective wait for all ranks, and costs a
// few messages; a program that works without it works with it.
const checkVariable = proclink.CheckVariable

// checksWanted reads the variable.
func checksWanted() (bool, error) {
	switch v := os.Getenv(checkVariable); v {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	default:
		return false, failf(ErrArg, "Init", "%s=%q: it is 1 or 0", checkVariable, v)
	}
}

// calls takes note, with checks, of a collective that uses a slot from now on.
// Blocking ones use some at a time, one after the other: all count as 0.
func (c *Comm) calls(slot uint32, op string) {
	if !c.world.checks {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.called == nil {
		c.called = make(map[uint32]string)
	}
	c.called[slot] = op
}

// calledIn returns the name of the collective that uses a slot.
func (c *Comm) calledIn(slot uint32) string {
	if slot < operationSlot {
		slot = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.called[slot], "a collective")
}

// noRoot is the root of a collective without one.
const noRoot = -1

// callWidth is the length of what ranks compare, in numbers: the root, and 24
// letters of the name.
const callWidth = 4

func callOf(op string, root int) []int64 {
	call := make([]int64, callWidth)
	copy(bytesOf(call[1:]), op)
	call[0] = int64(root)
	return call
}

// namesOf returns what a call was.
func namesOf(call []int64) (op string, root int) {
	return string(bytes.TrimRight(bytesOf(call[1:]), "\x00")), int(call[0])
}

// compare returns an error when not all ranks of c make this call. A non-blocking
// collective, whose name starts with I, compares when it runs: its start waits
// for nobody.
func (c *Comm) compare(op string, root int) error {
	if !c.world.checks || op[0] == 'I' {
		return nil
	}
	c.calls(0, op)
	return c.wrap(op, c.compareIn(checkSlot, op, root))
}

// compareIn compares in the context of a slot, in which the ranks compare
// nothing else meanwhile.
func (c *Comm) compareIn(slot uint32, op string, root int) error {
	if !c.world.checks {
		return nil
	}
	mine := callOf(op, root)
	all, err := c.gatherAllIn(slot, mine)
	if err != nil {
		return err
	}
	for i := range c.size {
		theirs := all[i*callWidth : (i+1)*callWidth]
		name, at := namesOf(theirs)
		mineName, _ := namesOf(mine)
		switch {
		case name != mineName:
			return failf(ErrComm, op, "in communicator %q rank %d calls %s instead", c.Name(), i, name)
		case at != root:
			return failf(ErrRoot, op, "in communicator %q the root is %d, at rank %d it is %d", c.Name(), root, i, at)
		}
	}
	return nil
}
