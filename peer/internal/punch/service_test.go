package punch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// TestTryWithoutAPublicAddressIsNone: it does not make the pauses between tries longer, so that a
// peer that has lost its public address, such as while a supernode restarts, tries soon when it is back.
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
