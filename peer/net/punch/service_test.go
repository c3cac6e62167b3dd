package punch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// TestAttemptWithoutAPublicAddressDoesNotCount checks that such an attempt does not lengthen the pauses. A
// peer that loses its public address for a while, such as during a restart of its supernode, then tries
// again soon.
func TestAttemptWithoutAPublicAddressDoesNotCount(t *testing.T) {
	p := New(nil, prometheus.NewRegistry(), nil, zerolog.Nop())
	p.host = newHost(t)
	if p.try("peer") {
		t.Error("a dial without a public address counts as an attempt")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
