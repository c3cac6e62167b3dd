package punch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// TestAttemptWithoutAPublicAddressDoesNotCount checks that an attempt without a public address does not lengthen
// the pauses. So a peer that has no public address for a while, as during a restart of its supernode, tries again
// soon afterwards.
func TestAttemptWithoutAPublicAddressDoesNotCount(t *testing.T) {
	p := New(nil, prometheus.NewRegistry(), nil, zerolog.Nop())
	p.host = newHost(t)
	if p.try("peer") {
		t.Error("an attempt without a public address counts as complete")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
