package reservation

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// go-libp2p and what it stands on keep these for the life of the process.
		goleak.IgnoreAnyFunction("github.com/libp2p/go-nat.DiscoverGateway"),
	)
}
