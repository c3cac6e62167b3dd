package peer

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/peer/internal/presence"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// A Config is everything that the owner can choose.
type Config struct {
	// Home is the folder of this peer. Several peers can live on one machine in
	// homes of their own. A peer that is no volunteer makes a temporary home in it,
	// which must exist.
	Home string

	// Jobs is the folder where a peer that is no volunteer keeps its user's jobs, so that
	// another process can go on with them, as the peer of the same Identity: see job.Kept.
	// Empty: nowhere. Without an Identity it has a new one.
	Jobs     string
	Identity crypto.PrivKey

	// PeersFile is where a peer that is no volunteer keeps the peers that it has met, so that
	// another process finds the network without a supernode: see PeersOf. Empty: nowhere.
	PeersFile string

	// Listen is the multiaddrs that the host listens on. Port 0 takes a free one.
	// "none" alone opens no port: others then reach this peer through relays.
	Listen []string

	// DataListen is the host:port where other peers connect directly for messages
	// between processes; port 0 takes a free one. Empty, it is a free port of
	// the addresses that the host listens on; "none" leaves everything to
	// libp2p's connections.
	DataListen string

	// Channels are the kinds of channels between processes, of shm, tcp and
	// stream: those that a volunteer allows, and those that a job is to use, best
	// first. None at all means all of them.
	Channels []string

	// Supernodes are the multiaddrs, /p2p/<peer ID> at the end, of peers that
	// introduce this one. Without any, mDNS and incoming connections have to do.
	Supernodes []string

	// Network is the name of the network. Peers of different names never meet. It is
	// a private one if there is a token for it in Home.
	Network string

	// Open says that Network is meant to be an open one, which anybody may join.
	Open bool

	// Token is a file with an invitation to a private network, in place of that in
	// Home. Network may then be left at its default.
	Token string

	// MemberOf is the home of the user of a peer that is no volunteer: its token
	// counts, and its identity vouches for this peer. Empty: none.
	MemberOf string

	// Slots is how many processes of others may run here at once. More slots
	// than processors make every process slower; 0 only introduces and submits.
	Slots int

	// MaxJobs is how many jobs may hold slots here at once, 0 for no limit.
	MaxJobs int

	// SlotLimits are what a process of a job may have here, JobLimits what all processes of
	// a job may have here together: memory=SIZE, cpu=PERCENT% of one processor, disk=SIZE,
	// processes=N, files=N, time=DURATION and upload=SIZE a second, or none. What is not
	// named stays at its default, which depends on the machine.
	SlotLimits, JobLimits []string

	// Niceness is that of programs, 1 to 19: how far they give way to what else the machine does.
	Niceness int

	// Allow names submitters that the owner trusts with native programs, Deny those that
	// never get slots. Both hold peer IDs. Who is in neither is judged by Accept. The owner's
	// lists always win (S3).
	Allow, Deny []string

	// Accept says which programs of which class of submitters are run, and on how many
	// slots: see policy.ParseRules.
	Accept []string

	// PauseWhen are the rules by which the peer pauses: active, battery, load, metered; none
	// alone is none of them. See package presence.
	PauseWhen []string

	// PauseJobs is what becomes of others' jobs meanwhile that cannot be migrated: go-on, end, or a
	// time for which they stand still at most; then they end.
	PauseJobs string

	// RequireConfinement refuses native programs of all but this peer's own user and those in
	// Allow where a wall around them is missing.
	RequireConfinement bool

	// Readable are absolute paths of files and folders that native programs may read here,
	// beside the system's own tools and libraries: a library in /opt, a data set.
	Readable []string

	// WasmEngine is the absolute path of an engine that runs modules in place of wazero, which is
	// built in. One that does not work is not used.
	WasmEngine string

	// QuietHours are times of the day, such as 08:00-18:30, when others get nothing.
	QuietHours []string

	// Owner names whose machine this is, so that the replicas of a rank are put on machines of
	// different owners where there is a choice; empty: not said. In a private network
	// what its owner has signed counts instead: see Invite.
	Owner string

	// Site names where the peer stands, such as a building; empty is nowhere in
	// particular. What is at one site may fail together, so the replicas of a rank are
	// put at different ones where there is a choice. Files that are staged enter each site about once.
	Site string

	// Machine names the physical machine: no two replicas of a rank are on peers of the same one. It is told to
	// no submitter as it is: see reservation.Config. "auto" is the running system, where it can be
	// told (Linux); "none" is not said.
	Machine string

	// HTTP is the host:port of the status page and the metrics; empty is none.
	HTTP string

	// MDNS finds the peers of the local network without a supernode.
	MDNS bool

	// NAT makes the peer reachable behind address translation: port mapping,
	// reachability checks, relays and hole punching. Off, it makes no connection
	// that nobody asked for, as on loopback or in a closed cluster.
	NAT bool

	// Reachability is what the owner knows of it. Auto finds out, maps ports, and
	// has others relay until some are known to get through. Public: they
	// do. Private: nobody does, so start only when a supernode relays.
	Reachability Reachability

	// Relay allows peers of the network to be reached through this one. Those to whom
	// it is a supernode ask at once; all others when it is found to be public.
	Relay bool

	// RelayPeers is how many may be reached so. RelayData and
	// RelayTime, in MiB each way and from its beginning, are what a circuit has; 0
	// is no limit. A job whose circuit ends loses a peer, so the limits are there
	// against abuse and far above what jobs need.
	RelayPeers int
	RelayData  int64
	RelayTime  time.Duration

	// GossipPeriod is how often a job's peers tell each other that they are
	// alive. Shorter finds a silent peer sooner and sends more.
	GossipPeriod time.Duration

	// ToleratedHang is how much longer than needed the peers of a job bear with
	// one that is silent. More forgives longer pauses of machines and networks,
	// and finds a silent peer later by as much. Jobs without replicas wait longer
	// than the default.
	ToleratedHang time.Duration

	// Detector says what makes a silent peer suspect: fast, or gossip as in the
	// original P2P-MPI. All peers of a job go by what its submitter's peer says.
	Detector string

	// CacheLimit is how many MiB of staged files are kept. Files that a running
	// job uses stay whatever the limit (T4).
	CacheLimit int64

	// LogLevel is the least level of messages: trace, debug, info, warn, error.
	LogLevel string

	// diskFree returns how many bytes are free where a folder is, or will be; -1: not known.
	diskFree func(dir string) int64
}

// A Reachability says whether others can connect to a peer.
type Reachability string

// The reachabilities.
const (
	Auto    Reachability = "auto"
	Public  Reachability = "public"
	Private Reachability = "private"
)

// noListen in place of an address is none.
const noListen = "none"

// DefaultConfig returns the settings for the open network.
func DefaultConfig() Config {
	return Config{
		Home: defaultHome(),
		Listen: []string{
			"/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1",
			"/ip6/::/tcp/0", "/ip6/::/udp/0/quic-v1", // passed over where there is no IPv6
		},
		Network:       "public",
		Machine:       thisMachine,
		Slots:         runtime.NumCPU(),
		PauseWhen:     presence.Default,
		PauseJobs:     "1h",
		Niceness:      launch.MostNiceness,
		MDNS:          true,
		NAT:           true,
		Reachability:  Auto,
		Relay:         true,
		RelayPeers:    64,
		RelayData:     4 << 10,
		RelayTime:     6 * time.Hour,
		GossipPeriod:  faultdetect.DefaultPeriod,
		ToleratedHang: faultdetect.DefaultGroupHang,
		Detector:      faultdetect.Fast.String(),
		CacheLimit:    10 << 10,
		LogLevel:      "info",

		RequireConfinement: true,
		diskFree:           diskFree,
	}
}

// LocalConfig returns the settings for peers that all live on this machine:
// those of DefaultConfig, except that nothing leaves it. One transport is
// enough there, and TCP is the one that notices at once when a peer is killed.
func LocalConfig() Config {
	c := DefaultConfig()
	c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	c.Network = "local"
	c.Machine = noMachine                      // all its peers are on this one
	c.Accept = []string{string(policy.Native)} // the user's own program
	c.MDNS = false
	c.NAT = false
	c.SlotLimits = limits.None // its user has written the programs
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

// networkName is what discovery takes as the name of a network, an owner, or a site.
var networkName = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}$`)

// Validate reports every wrong field at once, each by the name of its option.
func (c Config) Validate() error {
	var wrong complaints
	if c.Home == "" {
		wrong.say("home: no home folder is known; name one with --home or P2PMPI_HOME")
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
	wrong.add(err)
	if c.CacheLimit < 1 {
		wrong.say("cache-limit %d: want at least 1 MiB", c.CacheLimit)
	}
	if _, err := zerolog.ParseLevel(c.LogLevel); err != nil || c.LogLevel == "" {
		wrong.say("log-level %q: want trace, debug, info, warn or error", c.LogLevel)
	}
	return errors.Join(wrong...)
}

// complaints are what is wrong with a configuration.
type complaints []error

func (w *complaints) say(format string, args ...any) { w.add(fmt.Errorf(format, args...)) }

// add adds err, unless it is nil.
func (w *complaints) add(err error) {
	if err != nil {
		*w = append(*w, err)
	}
}

// validateLinks looks at how others are reached, and which others.
func (c Config) validateLinks(wrong *complaints) {
	for _, a := range c.listen() {
		if _, err := ma.NewMultiaddr(a); err != nil {
			wrong.say("listen %q: not a multiaddr such as /ip4/0.0.0.0/tcp/4001", a)
		}
	}
	_, err := addrInfos(c.Supernodes)
	wrong.add(err)
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

// validateRelay looks at what is done for peers that nobody reaches.
func (c Config) validateRelay(wrong *complaints) {
	if c.Reachability != Auto && c.Reachability != Public && c.Reachability != Private {
		wrong.say("reachability %q: want auto, public or private", c.Reachability)
	}
	if c.RelayPeers < 1 || c.RelayPeers > maxRelayPeers {
		wrong.say("relay-peers %d: want 1 to %d, or --relay=false", c.RelayPeers, maxRelayPeers)
	}
	if c.RelayData < 0 || c.RelayData > math.MaxInt64>>20 || c.RelayTime < 0 {
		wrong.say("relay-data %d, relay-time %v: want 0 (no limit) or more", c.RelayData, c.RelayTime)
	}
}

// validateLending looks at what of the machine is lent, to whom, and when.
func (c Config) validateLending(wrong *complaints) {
	if c.Slots < 0 || c.Slots > maxSlots {
		wrong.say("slots %d: want 0 to %d", c.Slots, maxSlots)
	}
	if c.MaxJobs < 0 {
		wrong.say("max-jobs %d: want 0 (no limit) or more", c.MaxJobs)
	}
	if c.Niceness < 1 || c.Niceness > launch.MostNiceness { // not 0: presence.Load goes by that
		wrong.say("niceness %d: want 1 to %d", c.Niceness, launch.MostNiceness)
	}
	if _, err := limits.Parse(c.SlotLimits); err != nil {
		wrong.say("slot-limits: %w", err)
	}
	if _, err := limits.ParseJob(c.JobLimits); err != nil {
		wrong.say("job-limits: %w", err)
	}
	for name, list := range map[string][]string{"allow": c.Allow, "deny": c.Deny} {
		_, err := peerIDs(name, list)
		wrong.add(err)
	}
	for _, name := range c.Readable {
		if !filepath.IsAbs(name) {
			wrong.say("readable: %q is no absolute path", name)
		} else if _, err := os.Stat(name); err != nil {
			wrong.say("readable: %w", err)
		}
	}
	if c.WasmEngine != "" && !filepath.IsAbs(c.WasmEngine) {
		wrong.say("wasm-engine: %q is no absolute path", c.WasmEngine)
	}
	_, err := policy.ParseRules(c.Accept, limits.Limits{})
	wrong.add(err)
	_, err = policy.ParseHours(c.QuietHours)
	wrong.add(err)
	_, err = presence.ParseRules(c.PauseWhen)
	wrong.add(err)
	_, _, err = parsePauseJobs(c.PauseJobs)
	wrong.add(err)
}

// maxRelayPeers is what fits into the connections that a peer keeps.
const maxRelayPeers = 512

// listen are the addresses in Listen.
func (c Config) listen() []string {
	if len(c.Listen) == 1 && c.Listen[0] == noListen {
		return nil
	}
	return c.Listen
}

// maxSlots is far above what a machine can run, and below what an offer may say.
const maxSlots = 1 << 12

// addrInfos parses the multiaddrs of supernodes; several of one peer are one.
func addrInfos(addrs []string) ([]p2ppeer.AddrInfo, error) {
	var errs []error
	parsed := make([]ma.Multiaddr, 0, len(addrs))
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err == nil {
			_, err = p2ppeer.AddrInfoFromP2pAddr(a)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("supernode %q: not a multiaddr such as /ip4/192.0.2.1/tcp/4001/p2p/PEER-ID", s))
			continue
		}
		parsed = append(parsed, a)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p2ppeer.AddrInfosFromP2pAddrs(parsed...)
}

// peerIDs parses a list of peer IDs; option names the list in errors.
func peerIDs(option string, list []string) ([]p2ppeer.ID, error) {
	var ids []p2ppeer.ID
	var errs []error
	for _, s := range list {
		id, err := p2ppeer.Decode(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: not a peer ID", option, s))
			continue
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(errs...)
}
