package node

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	circuitproto "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/x/rate"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/peer/net/relay"
)

// If there are more than manyConns connections, libp2p closes the least useful ones until fewConns are
// left.
const (
	fewConns  = 256
	manyConns = 384
)

// connsPerAddress is the maximum number of connections from one address. libp2p allows eight, but all machines
// behind one router have the same address. An address may open twice as many connections in a burst, and
// afterwards connsPerSecond connections per second.
const (
	connsPerAddress = 64
	connsPerSecond  = 2
)

// connsPerPeer is the maximum number of inbound connections from one peer. libp2p's own limit is as high, but
// covers both directions and counts pending dials. Since libp2p makes up to eight dials to a peer at once,
// pending dials could make it refuse a connection that succeeds.
const connsPerPeer = 8

// connsFromOthers is the maximum number of inbound connections from all peers together, on a machine with
// little memory. The limit grows with the memory.
const connsFromOthers = 768

// newResourceManager bounds the resources that remote peers can occupy (O4) and leaves room for jobs. A pair
// of processes uses two streams for channels. So two peers with 32 processes of a job each have 2,048 such
// streams between them. Any other protocol needs only a few streams between two peers. The manager logs peers
// that exceed their limits.
func newResourceManager(channels protocol.ID, log zerolog.Logger) (network.ResourceManager, error) {
	limits := resourceLimits(channels)
	// The rate of new connections is limited by source address as well. Loopback is exempt from both
	// limits.
	newOnes := rate.Limit{RPS: connsPerSecond, Burst: 2 * connsPerAddress}
	newConns := &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{
			{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
			{Prefix: netip.MustParsePrefix("::1/128")},
		},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: newOnes}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: newOnes}},
			GracePeriod:      time.Minute,
		},
	}
	manager, err := rcmgr.NewResourceManager(
		rcmgr.NewFixedLimiter(limits.AutoScale()),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: connsPerAddress}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: connsPerAddress}},
		),
		rcmgr.WithConnRateLimiters(newConns),
		rcmgr.WithMetrics(overruns{misconduct.New(log)}),
		rcmgr.WithMetricsDisabled(), // libp2p's own metrics are global, and peers may share a process
	)
	if err != nil {
		return nil, fmt.Errorf("resource manager: %w", err)
	}
	return circuitsApart{manager}, nil
}

// resourceLimits returns the limits for the resource manager. They grow with the machine's memory where
// libp2p's own limits do.
func resourceLimits(channels protocol.ID) rcmgr.ScalingLimitConfig {
	limits := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&limits)
	raise := func(l *rcmgr.BaseLimit, streams int) {
		l.Streams, l.StreamsInbound, l.StreamsOutbound = streams, streams, streams
	}
	raise(&limits.SystemBaseLimit, 32<<10)
	raise(&limits.PeerBaseLimit, 4<<10)
	limits.PeerBaseLimit.ConnsInbound = connsPerPeer
	limits.PeerBaseLimit.ConnsOutbound = connsPerPeer + swarm.DefaultPerPeerRateLimit
	limits.PeerBaseLimit.Conns = limits.PeerBaseLimit.ConnsInbound + limits.PeerBaseLimit.ConnsOutbound
	raise(&limits.ProtocolBaseLimit, 4<<10)
	raise(&limits.ProtocolPeerBaseLimit, 256)
	limits.ProtocolPeerLimitIncrease = rcmgr.BaseLimitIncrease{}
	limits.SystemBaseLimit.Conns = 1024
	limits.SystemBaseLimit.ConnsInbound = connsFromOthers
	limits.SystemBaseLimit.ConnsOutbound = 768
	limits.ProtocolPeerBaseLimit.Memory = 64 << 20
	all, ofPeer := limits.ProtocolBaseLimit, limits.ProtocolPeerBaseLimit
	raise(&all, 16<<10)
	raise(&ofPeer, 4<<10)
	limits.AddProtocolLimit(channels, all, limits.ProtocolLimitIncrease)
	limits.AddProtocolPeerLimit(channels, ofPeer, limits.ProtocolPeerLimitIncrease)
	relayLimits(&limits)
	identifyLimits(&limits)
	// Both peers may start an attempt to punch a hole before their previous attempt has ended.
	punching := rcmgr.BaseLimit{Streams: 8, StreamsInbound: 4, StreamsOutbound: 4, Memory: 1 << 20}
	limits.AddServicePeerLimit(holepunch.ServiceName, punching, rcmgr.BaseLimitIncrease{})
	limits.AddProtocolPeerLimit(holepunch.Protocol, punching, rcmgr.BaseLimitIncrease{})
	return limits
}

// identifyLimits lets every connected peer identify itself. libp2p's own limit is 64 streams in total, so a
// few identities that send nothing would lock out all newcomers.
func identifyLimits(limits *rcmgr.ScalingLimitConfig) {
	const each, all = connsPerPeer, connsFromOthers * connsPerPeer
	bound := func(n int, memory int64) rcmgr.BaseLimit {
		return rcmgr.BaseLimit{Streams: 2 * n, StreamsInbound: n, StreamsOutbound: n, Memory: memory}
	}
	none := rcmgr.BaseLimitIncrease{}
	limits.AddServiceLimit(identify.ServiceName, bound(all, 64<<20), none)
	limits.AddServicePeerLimit(identify.ServiceName, bound(2*each, 1<<20), none)
	for _, p := range []protocol.ID{identify.ID, identify.IDPush} {
		limits.AddProtocolLimit(p, bound(all, 64<<20), none)
		limits.AddProtocolPeerLimit(p, bound(each, 1<<20), none)
	}
}

// relayLimits bounds the circuits through this peer, and their memory to 64 MiB in total.
func relayLimits(limits *rcmgr.ScalingLimitConfig) {
	const circuits = 512 // at a time, each with two streams
	const streams, perPeer = 2 * circuits, 2 * relay.CircuitsPerPeer
	bound := func(n int, memory int64) rcmgr.BaseLimit {
		return rcmgr.BaseLimit{Streams: n, StreamsInbound: n, StreamsOutbound: n, Memory: memory}
	}
	none := rcmgr.BaseLimitIncrease{}
	limits.AddServiceLimit(circuit.ServiceName, bound(streams, circuits*relay.MemoryPerCircuit), none)
	limits.AddServicePeerLimit(circuit.ServiceName, bound(perPeer, 16<<20), none)
	for _, p := range []protocol.ID{circuitproto.ProtoIDv2Hop, circuitproto.ProtoIDv2Stop} {
		limits.AddProtocolLimit(p, bound(streams, 64<<20), none)
		limits.AddProtocolPeerLimit(p, bound(perPeer, 32<<20), none)
	}
}
