package mpj

import (
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
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
