package mpj

import (
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// checkVariable is the environment variable that turns on checks. With P2PMPI_CHECK=1 at all ranks,
// the ranks of a communicator compare their calls before each collective, and before they create a
// new communicator.
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

// agree compares call with the calls of the other ranks, if checks are on. invalid is the reason why
// this rank rejects its arguments, or nil; agree returns it after it has sent the reason to the
// other ranks. For a nonblocking call, agree only starts the comparison.
func (c *Comm) agree(op string, call calls.Call, invalid error) error {
	return errorOf(op, core.Agree(&c.base, op, call, invalid))
}
