package node

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// A Watcher learns from the hosts that identify themselves. It closes the connections to peers that speak
// another version of the protocol. Without a Watcher, the services of both peers would refuse each other's
// requests one by one; with it, the owner reads one message. Connections to hosts that do not run p2pmpi stay
// open. The Watcher also records the addresses at which other hosts observe this peer.
type Watcher struct {
	host       host.Host
	log        zerolog.Logger
	identified event.Subscription
	done       chan struct{}

	observed observedAddrs
	outdated outdated
	logged   misconduct.Pace // limits log messages about outdated peers
}

// Watch starts a Watcher of h, which works until Close.
func Watch(h host.Host, log zerolog.Logger) (*Watcher, error) {
	identified, err := h.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted), eventbus.Name("p2pmpi version"))
	if err != nil {
		return nil, fmt.Errorf("subscribe to connection events: %w", err)
	}
	w := &Watcher{host: h, log: log, identified: identified, done: make(chan struct{})}
	go w.run() // ends with the subscription
	return w, nil
}

// Close ends the Watcher.
func (w *Watcher) Close() error {
	err := w.identified.Close()
	<-w.done
	return err
}

func (w *Watcher) run() {
	defer close(w.done)
	for e := range w.identified.Out() {
		identified := e.(event.EvtPeerIdentificationCompleted)
		w.observed.note(identified)
		w.checkVersion(identified)
	}
}

// checkVersion closes the connections to a peer that speaks another version of the protocol.
func (w *Watcher) checkVersion(e event.EvtPeerIdentificationCompleted) {
	if !otherVersion(e.ProtocolVersion) {
		return
	}
	w.outdated.note(e.Peer, time.Now())
	err := w.host.Network().ClosePeer(e.Peer)
	if say, _ := w.logged.Due(e.Peer); say {
		w.log.Warn().Err(err).Stringer("from", e.Peer).Msgf(
			"refused a peer that speaks %.40q; this one speaks %q: upgrade the older of the two",
			e.ProtocolVersion, protocolVersion)
	}
}

// Outdated returns the peers that were disconnected within the last hour because of their version, so that
// a submitter learns why they do not take part.
func (w *Watcher) Outdated() []p2ppeer.ID { return w.outdated.list(time.Now()) }

// NATKinds returns the kind of address translation for each transport for which it is known. own are the
// addresses of this machine.
func (w *Watcher) NATKinds(own []netip.Addr) map[string]string {
	return natKinds(w.observed.all(), own)
}
