package peer

import (
	"crypto/rand"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

func TestMain(m *testing.M) {
	if status, ok := launch.Supervise(); ok {
		os.Exit(status)
	}
	if os.Getenv(proclink.FDVariable) != "" { // the program of a job
		os.Exit(exchange())
	}
	rand.Reader = drawn
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each process lingers for a second
	goleak.VerifyTestMain(m)
}
