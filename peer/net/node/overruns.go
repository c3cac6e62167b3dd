package node

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// overruns logs the peers that exceed a limit of the resource manager.
type overruns struct{ conduct *misconduct.Log }

var _ rcmgr.MetricsReporter = overruns{}

var errLimit = errors.New("above the limit of this peer")

func (o overruns) BlockStream(p p2ppeer.ID, dir network.Direction) {
	if dir == network.DirInbound {
		o.conduct.Note(p, "refused a stream", errLimit)
	}
}

func (o overruns) BlockPeer(p p2ppeer.ID) { o.conduct.Note(p, "refused a connection", errLimit) }

func (o overruns) BlockProtocolPeer(id protocol.ID, p p2ppeer.ID) {
	o.conduct.Note(p, "refused a stream of "+string(id), errLimit)
}

func (o overruns) BlockServicePeer(service string, p p2ppeer.ID) {
	o.conduct.Note(p, "refused a stream of "+service, errLimit)
}

// The remaining methods do nothing: these events concern no particular peer, or are normal.

func (overruns) AllowConn(network.Direction, bool)         {}
func (overruns) BlockConn(network.Direction, bool)         {}
func (overruns) AllowStream(p2ppeer.ID, network.Direction) {}
func (overruns) AllowPeer(p2ppeer.ID)                      {}
func (overruns) AllowProtocol(protocol.ID)                 {}
func (overruns) BlockProtocol(protocol.ID)                 {}
func (overruns) AllowService(string)                       {}
func (overruns) BlockService(string)                       {}
func (overruns) AllowMemory(int)                           {}
func (overruns) BlockMemory(int)                           {}
