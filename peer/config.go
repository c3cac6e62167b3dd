package peer

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/owner/lending"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// A Config holds all settings that the owner can choose.
type Config struct {
	// Home is the folder of this peer. Several peers can run on one machine, each with its own home. A peer that
	// is not a volunteer creates a temporary home in this folder, which must exist.
	Home string

	// Jobs is the folder where a peer that is not a volunteer keeps its user's jobs. Another process can
	// resume them as the peer with the same Identity: see submit.Kept. If Jobs is empty, the peer does not
	// keep jobs. If Identity is nil, the peer generates a new one.
	Jobs     string
	Identity crypto.PrivKey

	// PeersFile is the file where a peer that is not a volunteer keeps its known peers. Another process can
	// then find the network without a supernode: see homedir.PeersOf. If empty, the peer does not keep them.
	PeersFile string

	// Listen holds the addresses that the host listens on. Port 0 takes a free port. Without addresses, the
	// host opens no port: other peers then reach this peer through relays.
	Listen []ma.Multiaddr

	// DataListen is the host:port where other peers connect directly for messages between processes; port 0
	// takes a free port. If empty, the peer takes a free port of the addresses that the host listens on.
	// With "none", messages use only libp2p connections.
	DataListen string

	// Channels lists the kinds of channels between processes (shm, tcp, stream) that a volunteer permits or a
	// job uses, best first. An empty list means all kinds.
	Channels []string

	// Supernodes are the peers that introduce this one, each listed once. Without supernodes, the peer relies
	// on mDNS, its known peers and incoming connections.
	Supernodes []p2ppeer.AddrInfo

	// Network is the name of the network. Peers of different networks never connect. The network is private
	// if Home has a token for it.
	Network string

	// Open confirms that Network is meant to be an open network, which any peer may join.
	Open bool

	// Token is a file with an invitation to a private network, used instead of the one in Home. Network may
	// then keep its default.
	Token string

	// MemberOf is the user's home, for a peer that is not a volunteer. The peer uses that home's token, and
	// that home's identity confirms the peer's membership. If empty, there is no such home.
	MemberOf string

	// Settings control how the machine is lent to other users.
	lending.Settings

	// Niceness is the niceness of programs, 1 to 19. The higher the value, the more they yield to other programs
	// on the machine.
	Niceness int

	// Readable lists absolute paths of files and folders that native programs may read, such as a library
	// in /opt or a data set. The system's tools and libraries are always readable.
	Readable []string

	// WasmEngine is the absolute path of an engine that runs WebAssembly modules instead of the built-in
	// wazero. If that engine does not work, the peer uses wazero.
	WasmEngine string

	// Owner names the owner of this machine. The replicas of a rank are placed on machines of different owners
	// if possible. If empty, the owner is not stated. In a private network, the name that the network's owner
	// has signed takes precedence: see networks.Invite.
	Owner string

	// Site names the location of the machine, such as a building. If empty, the location is not stated. Machines
	// of one site may fail together, so the replicas of a rank are placed at different sites if possible.
	// Staged files enter each site about once.
	Site string

	// Machine identifies the physical machine: no two replicas of a rank run on peers of the same machine.
	// "auto" uses the running system's identity where it is known (Linux); "none" gives no identity. The
	// peer does not disclose the value itself to submitters: see reservation.Config.
	Machine string

	// HTTP is the host:port of the status page and the metrics. If empty, neither is served.
	HTTP string

	// MDNS enables mDNS, which finds the peers of the local network without a supernode.
	MDNS bool

	// NAT makes the peer reachable behind network address translation, by port mapping, reachability
	// checks, relays and hole punching. If false, the peer opens no connections for these purposes, as on
	// loopback or in a closed cluster.
	NAT bool

	// Reachability states whether other peers can connect directly. With Public, they can. With Private, they
	// cannot, so New waits a few seconds until a supernode is its relay. With Auto, the owner does not know. The
	// peer then checks its reachability, maps ports, and uses relays until direct connections are known to work.
	Reachability node.Reachability

	// Relay lets other peers of the network be reached through this peer. Peers that have this peer as a
	// supernode use it as a relay at once. Other peers do so once it is found to be publicly reachable.
	Relay bool

	// RelayPeers is the number of peers that may be reached through this one. RelayData, in MiB for each
	// direction, and RelayTime limit one circuit. Zero means no limit. A job loses a peer when its circuit
	// ends, so the limits guard only against abuse and are far above the needs of jobs.
	RelayPeers int
	RelayData  int64
	RelayTime  time.Duration

	// GossipPeriod is the interval between heartbeats of a job's peers. A shorter period detects a silent
	// peer sooner and sends more messages.
	GossipPeriod time.Duration

	// ToleratedHang is the additional silence that a job's peers tolerate before they report a peer as failed. A
	// larger value tolerates longer interruptions of machines and networks, and delays the detection of failures
	// by the same time. With the default, jobs without replicas tolerate a longer silence.
	ToleratedHang time.Duration

	// Detector selects the failure detector: fast, or gossip as in the original P2P-MPI. All peers of a job
	// use the setting of its submitter's peer.
	Detector string

	// CacheLimit bounds the staged files that the peer keeps, in MiB. The cache never evicts files that a
	// running job uses (T4).
	CacheLimit int64

	// LogLevel is the lowest level of logged messages: trace, debug, info, warn or error.
	LogLevel string

	// diskFree returns the free bytes of the file system that holds, or will hold, a folder. It returns -1 if
	// the number is unknown.
	diskFree func(dir string) int64
}

// DefaultConfig returns the settings for the open network.
func DefaultConfig() Config {
	return Config{
		Home: defaultHome(),
		Listen: []ma.Multiaddr{
			ma.StringCast("/ip4/0.0.0.0/tcp/0"), ma.StringCast("/ip4/0.0.0.0/udp/0/quic-v1"),
			ma.StringCast("/ip6/::/tcp/0"), ma.StringCast("/ip6/::/udp/0/quic-v1"), // skipped on machines without IPv6
		},
		Network:       networks.Default,
		Machine:       machine.This,
		Settings:      lending.Default(),
		Niceness:      launch.MostNiceness,
		MDNS:          true,
		NAT:           true,
		Reachability:  node.Auto,
		Relay:         true,
		RelayPeers:    64,
		RelayData:     4 << 10,
		RelayTime:     6 * time.Hour,
		GossipPeriod:  faultdetect.DefaultPeriod,
		ToleratedHang: faultdetect.DefaultGroupHang,
		Detector:      faultdetect.Fast.String(),
		CacheLimit:    10 << 10,
		LogLevel:      "info",

		diskFree: machine.DiskFree,
	}
}

// LocalConfig returns the settings for peers that all run on this machine: those of DefaultConfig, except
// that the peers do not communicate with other machines. One transport is enough for them. TCP detects a
// killed peer at once.
func LocalConfig() Config {
	c := DefaultConfig()
	c.Listen = []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}
	c.Network = "local"
	c.Machine = machine.None                   // all these peers are on this machine
	c.Accept = []string{string(policy.Native)} // the user's own program
	c.MDNS = false
	c.NAT = false
	c.SlotLimits = limits.None // the user's own programs
	c.PauseWhen = nil
	c.RequireConfinement = false
	c.Niceness = 10
	return c
}

func defaultHome() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return "" // Validate asks for --home
	}
	return filepath.Join(dir, ".p2pmpi")
}

// networkName matches the names of networks, owners, sites and machines that discovery accepts.
var networkName = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}$`)

// Validate reports all invalid fields at once. Each error names the field's option.
func (c Config) Validate() error {
	var wrong fieldErrors
	if c.Home == "" {
		wrong.say("home: no home directory is known; set --home or P2PMPI_HOME")
	}
	c.validateLinks(&wrong)
	c.validateRelay(&wrong)
	c.validateLending(&wrong)
	if c.GossipPeriod < 10*time.Millisecond {
		wrong.say("gossip-period %v: want at least 10ms", c.GossipPeriod)
	}
	if c.ToleratedHang < 0 || c.ToleratedHang > faultdetect.MaxHang {
		wrong.say("tolerated-hang %v: want 0 to %v", c.ToleratedHang, faultdetect.MaxHang)
	}
	_, err := faultdetect.ParseMode(c.Detector)
	wrong = append(wrong, err)
	if c.CacheLimit < 1 {
		wrong.say("cache-limit %d: want at least 1 MiB", c.CacheLimit)
	}
	if _, err := zerolog.ParseLevel(c.LogLevel); err != nil || c.LogLevel == "" {
		wrong.say("log-level %q: want trace, debug, info, warn or error", c.LogLevel)
	}
	return errors.Join(wrong...) // without those that are nil
}

// fieldErrors are the errors in a configuration.
type fieldErrors []error

func (w *fieldErrors) say(format string, args ...any) { *w = append(*w, fmt.Errorf(format, args...)) }

// validateLinks checks the settings for addresses, channels and names.
func (c Config) validateLinks(wrong *fieldErrors) {
	if _, _, err := net.SplitHostPort(c.DataListen); err != nil && c.DataListen != "" && c.DataListen != "none" {
		wrong.say("data-listen %q: want host:port, or none", c.DataListen)
	}
	if _, err := net.ResolveTCPAddr("tcp", c.HTTP); err != nil && c.HTTP != "" {
		wrong.say("http %q: want host:port, such as 127.0.0.1:8080", c.HTTP)
	}
	if _, err := proclink.ParseKinds(c.Channels); err != nil {
		wrong.say("channels: %w", err)
	}
	if !networkName.MatchString(c.Network) {
		wrong.say("network %.80q: want 1 to 64 letters, digits or . _ - +", c.Network)
	}
	for option, name := range map[string]string{"machine": c.Machine, "owner": c.Owner, "site": c.Site} {
		if name != "" && !networkName.MatchString(name) {
			wrong.say("%s %.80q: want 1 to 64 letters, digits or . _ - +", option, name)
		}
	}
}

func (c Config) validateRelay(wrong *fieldErrors) {
	if c.Reachability != node.Auto && c.Reachability != node.Public && c.Reachability != node.Private {
		wrong.say("reachability %q: want auto, public or private", c.Reachability)
	}
	if c.RelayPeers < 1 || c.RelayPeers > maxRelayPeers {
		wrong.say("relay-peers %d: want 1 to %d, or --relay=false", c.RelayPeers, maxRelayPeers)
	}
	if c.RelayData < 0 || c.RelayData > math.MaxInt64>>20 || c.RelayTime < 0 {
		wrong.say("relay-data %d, relay-time %v: want 0 (no limit) or more", c.RelayData, c.RelayTime)
	}
}

// validateLending checks the settings for slots, limits, and the policy for submitters.
func (c Config) validateLending(wrong *fieldErrors) {
	*wrong = append(*wrong, c.Settings.Validate())
	if c.Niceness < 1 || c.Niceness > launch.MostNiceness { // presence.Load relies on a niceness above 0
		wrong.say("niceness %d: want 1 to %d", c.Niceness, launch.MostNiceness)
	}
	for _, name := range c.Readable {
		if !filepath.IsAbs(name) {
			wrong.say("readable: %q is not an absolute path", name)
		} else if _, err := os.Stat(name); err != nil {
			wrong.say("readable: %w", err)
		}
	}
	if c.WasmEngine != "" && !filepath.IsAbs(c.WasmEngine) {
		wrong.say("wasm-engine: %q is not an absolute path", c.WasmEngine)
	}
}

// maxRelayPeers is the largest number of relayed peers that fits into the connections that a peer keeps.
const maxRelayPeers = 512
