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

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/internal/dialrule"
	"github.com/p2pmpi/p2pmpi/peer/internal/membership"
	"github.com/p2pmpi/p2pmpi/peer/internal/portmap"
	"github.com/p2pmpi/p2pmpi/peer/internal/punch"
	"github.com/p2pmpi/p2pmpi/peer/internal/relay"
	"github.com/p2pmpi/p2pmpi/peer/internal/reunion"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// protocolVersion is what peers tell each other when they connect.
var protocolVersion = fmt.Sprintf("%s%d", protocolPrefix, version.Protocol)

const protocolPrefix = "p2pmpi/"

// observers is how many peers at different addresses must have seen this one at an
// address before it is told to others. Libp2p wants four, and many a network has fewer
// peers that are not behind address translation themselves. One could lie.
const observers = 2

// wantObservers sets that, for all hosts of the process.
var wantObservers = sync.OnceFunc(func() { observedaddrs.ActivationThresh = observers })

// newHost starts the libp2p host that cfg describes. Its metrics go to reg, a
// registry of its own since several peers can share a process. Without dials it dials wherever
// others say. Without cfg.NAT it needs no puncher, and without a mapper no ports are mapped.
func newHost(cfg Config, key crypto.PrivKey, gate *membership.Gate, dials *dialrule.Rule, reg prometheus.Registerer, puncher *punch.Puncher, mapper *portmap.Mapper, log zerolog.Logger) (host.Host, error) {
	wantObservers()
	listen, err := listenAddrs(cfg)
	if err != nil {
		return nil, err
	}
	if err := portsFree(listen); err != nil {
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
		libp2p.NoListenAddrs, // yet: New would leave goroutines behind if it could not
		libp2p.Muxer(yamux.ID, reunion.Counting(yamux.DefaultTransport)),
		libp2p.SwarmOpts(swarm.WithDialRanker(rankingFor(listen).rank)),
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
	if err := h.Network().Listen(listen...); err != nil { // not even one address
		h.Close()
		return nil, fmt.Errorf("listen on %s: %w", strings.Join(cfg.Listen, ", "), err)
	}
	return h, nil
}

// admission is how connections are secured, and who gets any.
func admission(gate *membership.Gate, dials *dialrule.Rule) []libp2p.Option {
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
		// TLS first: in bulk it is twice as fast as Noise.
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		// Last, where a member of a private network speaks nothing else: it says why.
		libp2p.Security(membership.SecurityID, gate.TLS),
	)
}

// listenAddrs returns the addresses to listen on of cfg, which Validate has passed.
func listenAddrs(cfg Config) (listen []ma.Multiaddr, err error) {
	for _, s := range cfg.listen() {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("listen %q: %w", s, err)
		}
		listen = append(listen, a)
	}
	return listen, nil
}

// portsFree refuses a port that somebody listens on already. libp2p shares
// TCP ports (SO_REUSEPORT, which hole punching needs), so two peers would both
// start, and who dials the one would meet the other; without its UDP port it would
// silently do.
func portsFree(listen []ma.Multiaddr) error {
	for _, a := range listen {
		network, address, err := manet.DialArgs(a)
		if err != nil || strings.HasSuffix(address, ":0") {
			continue // a free port of the system's choice
		}
		if errors.Is(probePort(network, address), syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: %w", a, syscall.EADDRINUSE)
		}
	}
	return nil
}

// probePort listens for a moment.
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

// reachability is how a peer is reached behind address translation. Which relays it
// uses, and whether it is one, is decided in startRelays. Who knows whether others
// get through neither asks them nor the router.
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

// tcpHeadStart is how long QUIC waits for TCP, and circuits for both: a round trip and the handshakes,
// so that QUIC is used where TCP does not get through, and hardly elsewhere.
const tcpHeadStart = 300 * time.Millisecond

// circuitHeadStart is how long the next address of a relay waits for the one before: some
// round trips, and what they take on a busy machine.
const circuitHeadStart = time.Second

// ownHeadStart is how long the other one waits where this peer listens on one of TCP and QUIC
// only. Others see at which address it is by the connections from where it listens, so by the
// other one it would never hear of its own, and holes would not be punched.
const ownHeadStart = 5 * time.Second

// A ranking says in what order the addresses of a peer are dialled.
type ranking struct {
	isFirst   func(ma.Multiaddr) bool
	headStart time.Duration // of the first ones before other direct ones
}

// rankingFor has a peer that listens on some addresses dial TCP before QUIC, against
// libp2p's custom. The end of a killed process closes its TCP connections within
// milliseconds, so that all peers of a job know at once; QUIC finds out after 43 s. TCP also
// carries more. Who listens on QUIC only dials that first.
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

// rank is a network.DialRanker. A relay is dialled by one of its addresses at a time: all of
// them come to one circuit.
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
	through := make(map[p2ppeer.ID]time.Duration) // by relay: how many of its addresses, in head starts
	for _, a := range swarm.DefaultDialRanker(rest) {
		relay := connection.RelayOf(a.Addr)
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
	return err == nil && !isRelayed(a)
}

// Of more than manyConns connections the least useful are closed, until fewConns are left.
const (
	fewConns  = 256
	manyConns = 384
)

// connsPerAddress is how many connections one address may hold. libp2p allows
// eight, but a laboratory of machines behind one translated address is one
// address here. It may make twice as many at once, and then connsPerSecond.
const (
	connsPerAddress = 64
	connsPerSecond  = 2
)

// connsPerPeer is how many connections a peer may have made here: what libp2p allows in all.
// There it counts the dials, of which it makes as many at a time, so that one which had met
// the peer by another way was refused.
const connsPerPeer = 8

// connsFromOthers is how many connections all others may have made here, at least.
const connsFromOthers = 768

// newResourceManager bounds what others can make this peer hold (O4), and leaves
// room for jobs: a pair of processes has two streams, so two peers with 32
// processes of a job each have 2,048 between them, all for channels. Of any other
// protocol a peer needs a few for each job, and a job one or two for each peer.
// Whoever wants more is named in log.
func newResourceManager(log zerolog.Logger) (network.ResourceManager, error) {
	limits := resourceLimits()
	// New connections are rationed by source as well. Loopback is exempt in both.
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
		rcmgr.WithMetricsDisabled(), // libp2p's own: they are global, and peers may share a process
	)
	if err != nil {
		return nil, fmt.Errorf("resource manager: %w", err)
	}
	return circuitsApart{manager}, nil
}

// resourceLimits are the resource manager's, which grow with the memory of the machine where
// libp2p's own do.
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
	// Of holes both may be at one, and have just been at another.
	punching := rcmgr.BaseLimit{Streams: 8, StreamsInbound: 4, StreamsOutbound: 4, Memory: 1 << 20}
	limits.AddServicePeerLimit(holepunch.ServiceName, punching, rcmgr.BaseLimitIncrease{})
	limits.AddProtocolPeerLimit(holepunch.Protocol, punching, rcmgr.BaseLimitIncrease{})
	return limits
}

// identifyLimits lets every peer that is connected say who it is. libp2p's own limit is 64 streams of
// all: a few identities that say nothing would keep all newcomers out.
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

// relayLimits bounds the circuits through this peer: 64 MiB at most.
func relayLimits(limits *rcmgr.ScalingLimitConfig) {
	const circuits = 512 // at a time, of two streams each
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

// anyPort replaces the ports of listening addresses by 0, any free one.
func anyPort(listen []string) []string {
	out := make([]string, len(listen))
	for i, a := range listen {
		out[i] = withoutPort(a)
	}
	return out
}

// otherVersion reports whether a remote host speaks another version of our
// protocols, by the version string that it identifies itself with.
func otherVersion(remote string) bool {
	return strings.HasPrefix(remote, protocolPrefix) && remote != protocolVersion
}
