package punch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// TestTryWithoutAPublicAddressIsNone checks that such an attempt does not lengthen the pauses. A peer that
// loses its public address for a while, such as during a restart of its supernode, then tries again soon.
func TestTryWithoutAPublicAddressIsNone(t *testing.T) {
	p := New(nil, prometheus.NewRegistry(), nil, zerolog.Nop())
	p.host = newHost(t)
	p.running.Go(func() { p.try("peer") })
	if over := <-p.over; over.really || over.peer != "peer" {
		t.Errorf("got %+v, want no try", over)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
