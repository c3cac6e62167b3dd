package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p"
	coreconnmgr "github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	circuitproto "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery/connected"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/net/punch"
	"github.com/p2pmpi/p2pmpi/peer/net/relay"
)

// protocolVersion is the version string that peers exchange when they connect.
var protocolVersion = fmt.Sprintf("%s%d", protocolPrefix, version.Protocol)

const protocolPrefix = "p2pmpi/"

// observers is the number of peers at different addresses that must have observed this peer at an address
// before it announces the address. libp2p wants four, but many networks have fewer peers that are not
// behind address translation. A single observer could lie.
const observers = 2

// wantObservers sets that number for all hosts of the process.
var wantObservers = sync.OnceFunc(func() { observedaddrs.ActivationThresh = observers })

// newHost starts the libp2p host that cfg describes. Its metrics go to reg, which belongs to this peer
// alone because several peers can share a process. If dials is nil, the host dials any address. Without
// cfg.NAT the puncher may be nil. If mapper is nil, no ports are mapped.
func newHost(cfg Config, key crypto.PrivKey, gate *membership.Gate, dials *dialfilter.Filter, reg prometheus.Registerer, puncher *punch.Puncher, mapper *portmap.Mapper, log zerolog.Logger) (host.Host, error) {
	wantObservers()
	if err := portsFree(cfg.Listen); err != nil {
		return nil, err
	}
	resources, err := newResourceManager(log)
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(fewConns, manyConns, connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	options := []libp2p.Option{
		libp2p.Identity(key),
		libp2p.NoListenAddrs, // New would leak goroutines if it could not listen
		libp2p.Muxer(yamux.ID, connected.Counting(yamux.DefaultTransport)),
		libp2p.SwarmOpts(swarm.WithDialRanker(rankingFor(cfg.Listen).rank)),
		libp2p.ProtocolVersion(protocolVersion),
		libp2p.UserAgent(protocolPrefix + version.Release),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(conns),
		libp2p.PrometheusRegisterer(reg),
	}
	options = append(append(options, admission(gate, dials)...), reachability(cfg, puncher, mapper)...)
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, fmt.Errorf("start libp2p: %w", err)
	}
	if err := h.Network().Listen(cfg.Listen...); err != nil { // not even one address works
		h.Close()
		return nil, fmt.Errorf("listen on %v: %w", cfg.Listen, err)
	}
	return h, nil
}

// admission returns the options for connection security and for the filter of connections.
func admission(gate *membership.Gate, dials *dialfilter.Filter) []libp2p.Option {
	var gater coreconnmgr.ConnectionGater
	if !gate.Open() {
		gater = gate
	}
	var options []libp2p.Option
	if dials != nil {
		gater = dials.Gater(gater)
		options = append(options, libp2p.MultiaddrResolver(dials.Resolver(swarm.ResolverFromMaDNS{Resolver: madns.DefaultResolver})))
	}
	if gater != nil {
		options = append(options, libp2p.ConnectionGater(gater))
	}
	if !gate.Open() {
		return append(options,
			libp2p.Transport(gate.QUIC),
			libp2p.Security(membership.SecurityID, gate.TLS),
		)
	}
	return append(options,
		libp2p.Transport(quic.NewTransport),
		// TLS comes first because its throughput is twice that of Noise.
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		// This comes last, for remote members of a private network, which support nothing else: it reports
		// the reason.
		libp2p.Security(membership.SecurityID, gate.TLS),
	)
}

// portsFree returns an error if a port is in use. libp2p shares TCP ports (SO_REUSEPORT, which hole
// punching needs). Two peers could therefore start on the same port, and connections to one would reach the
// other. libp2p also starts without an error if only the UDP port is taken.
func portsFree(listen []ma.Multiaddr) error {
	for _, a := range listen {
		network, address, err := manet.DialArgs(a)
		if err != nil || strings.HasSuffix(address, ":0") {
			continue // the system chooses a free port
		}
		if errors.Is(probePort(network, address), syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: %w", a, syscall.EADDRINUSE)
		}
	}
	return nil
}

// probePort listens on an address for a moment.
func probePort(network, address string) error {
	var probe io.Closer
	var err error
	if strings.HasPrefix(network, "udp") {
		probe, err = new(net.ListenConfig).ListenPacket(context.Background(), network, address)
	} else {
		probe, err = new(net.ListenConfig).Listen(context.Background(), network, address)
	}
	if err != nil {
		return err
	}
	return probe.Close()
}

// reachability returns the options for reaching a peer behind address translation. startRelays decides
// which relays the peer uses, and whether it is one itself. If the owner has stated the reachability,
// libp2p takes it from the options, and the router maps no ports. A public peer still runs AutoNAT v2.
func reachability(cfg Config, puncher *punch.Puncher, mapper *portmap.Mapper) []libp2p.Option {
	if !cfg.NAT {
		return []libp2p.Option{libp2p.DisableRelay(), libp2p.Transport(tcp.NewTCPTransport)}
	}
	options := []libp2p.Option{libp2p.EnableRelay(), libp2p.Transport(puncher.TCP), puncher.Option()}
	switch cfg.Reachability {
	case Public:
		return append(options, libp2p.ForceReachabilityPublic(), libp2p.EnableAutoNATv2())
	case Private:
		return append(options, libp2p.ForceReachabilityPrivate())
	}
	return append(options, libp2p.EnableAutoNATv2(), mapper.Option())
}

// tcpHeadStart is the delay of QUIC after TCP, and of circuits after both: one round trip and the
// handshakes. It leads to QUIC where TCP does not get through, and rarely elsewhere.
const tcpHeadStart = 300 * time.Millisecond

// circuitHeadStart is the delay between the addresses of one relay: some round trips, with time for a busy
// machine.
const circuitHeadStart = time.Second

// ownHeadStart is the delay of the other transport if this peer listens on only one of TCP and QUIC. Other
// peers learn this peer's address from connections that start at its listening port. Connections over the
// other transport would not show that address, so hole punching would fail.
const ownHeadStart = 5 * time.Second

// A ranking determines the order in which the addresses of a peer are dialled.
type ranking struct {
	isFirst   func(ma.Multiaddr) bool
	headStart time.Duration // of the first addresses before other direct ones
}

// rankingFor returns the ranking for a peer that listens on the given addresses. Unlike libp2p, it dials
// TCP before QUIC. The kernel closes the TCP connections of a killed process within milliseconds, so all
// peers of a job notice at once; QUIC takes 43 s. TCP also has the higher throughput. A peer that listens
// only on QUIC dials QUIC first.
func rankingFor(listen []ma.Multiaddr) ranking {
	tcp, quic := slices.ContainsFunc(listen, isDirectTCP), slices.ContainsFunc(listen, isDirectQUIC)
	switch {
	case tcp && !quic:
		return ranking{isDirectTCP, ownHeadStart}
	case quic && !tcp:
		return ranking{isDirectQUIC, ownHeadStart}
	}
	return ranking{isDirectTCP, tcpHeadStart}
}

// rank implements network.DialRanker. It dials the addresses of a relay one after the other, since all of
// them lead to the same circuit.
func (r ranking) rank(addrs []ma.Multiaddr) []network.AddrDelay {
	var first, rest []ma.Multiaddr
	for _, a := range addrs {
		if r.isFirst(a) {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	ranked := swarm.DefaultDialRanker(first)
	through := make(map[p2ppeer.ID]time.Duration) // sum of the head starts given so far, by relay
	for _, a := range swarm.DefaultDialRanker(rest) {
		relay := connected.RelayOf(a.Addr)
		switch {
		case relay != "":
			a.Delay += through[relay]
			through[relay] += circuitHeadStart
			if len(first) > 0 {
				a.Delay += tcpHeadStart
			}
		case len(first) > 0:
			a.Delay += r.headStart
		}
		ranked = append(ranked, a)
	}
	return ranked
}

func isDirectTCP(a ma.Multiaddr) bool { return isDirect(a, ma.P_TCP) }

func isDirectQUIC(a ma.Multiaddr) bool { return isDirect(a, ma.P_QUIC_V1) }

func isDirect(a ma.Multiaddr, transport int) bool {
	_, err := a.ValueForProtocol(transport)
	return err == nil && !connection.IsCircuit(a)
}

// If there are more than manyConns connections, libp2p closes the least useful ones until fewConns are
// left.
const (
	fewConns  = 256
	manyConns = 384
)

// connsPerAddress is the number of connections that one address may hold. libp2p allows eight, but a
// laboratory of machines behind one translated address appears as one address. An address may open twice as
// many in a burst, and then connsPerSecond.
const (
	connsPerAddress = 64
	connsPerSecond  = 2
)

// connsPerPeer is the number of inbound connections that a peer may hold. libp2p applies this number to
// both directions together, and counts pending dials, of which it makes as many at once. It could therefore
// refuse a connection that succeeded by another way.
const connsPerPeer = 8

// connsFromOthers is the number of inbound connections that all peers together may hold. This is the
// minimum: the limit grows with the machine's memory.
const connsFromOthers = 768

// newResourceManager bounds the resources that remote peers can occupy (O4) and leaves room for jobs. A
// pair of processes uses two streams, so two peers with 32 processes of a job each share 2,048 streams, all
// of them for channels. For any other protocol, a peer needs a few streams per job, and a job one or two
// per peer. The manager logs peers that exceed their limits.
func newResourceManager(log zerolog.Logger) (network.ResourceManager, error) {
	limits := resourceLimits()
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
func resourceLimits() rcmgr.ScalingLimitConfig {
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
	channels, ofPeer := limits.ProtocolBaseLimit, limits.ProtocolPeerBaseLimit
	raise(&channels, 16<<10)
	raise(&ofPeer, 4<<10)
	limits.AddProtocolLimit(launch.ChannelProtocol, channels, limits.ProtocolLimitIncrease)
	limits.AddProtocolPeerLimit(launch.ChannelProtocol, ofPeer, limits.ProtocolPeerLimitIncrease)
	relayLimits(&limits)
	identifyLimits(&limits)
	// Both peers may punch a hole now while their previous attempt is still ending.
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

var portInAddr = regexp.MustCompile(`/(tcp|udp)/[0-9]+`)

// anyPort replaces the ports of listening addresses with 0, which means any free port.
func anyPort(listen []ma.Multiaddr) []ma.Multiaddr {
	out := make([]ma.Multiaddr, len(listen))
	for i, a := range listen {
		out[i] = withoutPort(a)
	}
	return out
}

// otherVersion reports whether the version string of a remote host names another version of this protocol.
// It is false for hosts that do not run p2pmpi.
func otherVersion(remote string) bool {
	return strings.HasPrefix(remote, protocolPrefix) && remote != protocolVersion
}
