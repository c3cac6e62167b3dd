package connection

import (
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// ForgetFailures has the next dial to a peer be a try. Otherwise libp2p makes none for 5 s
// and more after a failure, so that a link that is back would not be noticed, nor that of
// two peers who have dialled each other at the same instant either one gets through the
// second time. It is for those whose tries are spaced.
func ForgetFailures(h host.Host, id p2ppeer.ID) {
	if s, ok := h.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		s.Backoff().Clear(id)
	}
}
