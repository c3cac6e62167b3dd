package switchboard

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// eventTimeout bounds the wait for an event.
const eventTimeout = 20 * time.Second

// TestMain checks that no goroutine is left after the tests.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/ipfs/go-log/v2/writer.(*MirrorWriter).logRoutine"),
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"),
	)
}
