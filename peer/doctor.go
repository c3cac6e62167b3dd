package peer

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
)

// A Level is the severity of a finding.
type Level string

// The levels, best first.
const (
	Well    Level = "ok"
	Unknown Level = "unknown" // could not be determined
	Warning Level = "warning" // works, but could be better
	Failing Level = "failure" // does not work
)

// A Finding is one result of p2pboot doctor.
type Finding struct {
	About string `json:"about"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what the owner can do; empty if Level is Well
}

// Thresholds for the level Well.
const (
	leastFiles     = 4096
	leastProcesses = 256
	leastMemory    = 512 << 20
	spareDisk      = 256 << 20 // beyond the possible growth of the cache
	maxSkew        = 30 * time.Second
)

// Diagnose returns the findings for the diagnostics of a machine.
func Diagnose(s Diagnostics) []Finding {
	out := checkPeer(s)
	if p := s.Network; p != nil {
		out = append(out, checkSupernodes(*p), checkReachability(*p, s.Machine), checkNAT(*p), checkClock(*p))
	}
	out = append(out, checkGranted(s.Granted)...)
	out = append(out, checkRules(s.Unread)...)
	m := s.Machine
	out = append(out, checkPortMapping(m, s.Network), checkDisk(m), checkFiles(m), checkProcesses(m), checkMemory(m), checkKernel(m))
	if s.Home != "" { // without a home, no sandbox was tested
		return out
	}
	return append(out, checkSandbox(m.Walls)...)
}

// Worst returns the worst level among the findings.
func Worst(all []Finding) Level {
	levels := []Level{Well, Unknown, Warning, Failing}
	worst := 0
	for _, f := range all {
		worst = max(worst, slices.Index(levels, f.Level))
	}
	return levels[worst]
}

func well(about, format string, args ...any) Finding {
	return Finding{About: about, Level: Well, Found: fmt.Sprintf(format, args...)}
}

// checkPeer reports that a peer runs, or why none can.
func checkPeer(s Diagnostics) (out []Finding) {
	if p := s.Network; p != nil {
		return []Finding{well("peer", "runs, announces %s, and is connected with %s",
			english.Plural(p.Addresses, "address", "addresses"), english.Plural(p.Connected, "peer", ""))}
	}
	if s.Home != "" {
		out = append(out, Finding{"home", Failing, s.Home, "choose another folder with --home or P2PMPI_HOME"})
	}
	if s.Ports != "" {
		out = append(out, Finding{"ports", Failing, s.Ports, "end who listens there, or choose another address with --listen or --data-listen"})
	}
	if len(out) == 0 {
		out = append(out, Finding{"peer", Warning, "none runs on this home; its ports are free", "start it with p2pboot, and ask again: only then is it known how others reach it"})
	}
	return out
}

func checkSupernodes(p NetworkState) Finding {
	const do = "check the addresses given with --supernode, and whether a firewall lets this machine out to them"
	switch {
	case p.Supernodes == 0 && p.Connected == 0:
		return Finding{"supernodes", Warning, "none is configured, and no peer is connected", "name one with --supernode, unless all peers are on this local network"}
	case p.Supernodes == 0:
		return well("supernodes", "none is configured, nor needed: others are connected")
	case p.Met == 0:
		return Finding{"supernodes", Failing, fmt.Sprintf("none of %d is connected", p.Supernodes), do}
	case p.Met < p.Supernodes:
		return Finding{"supernodes", Warning, fmt.Sprintf("%d of %d are connected", p.Met, p.Supernodes), do}
	}
	return well("supernodes", "%d of %d are connected", p.Met, p.Supernodes)
}

func checkReachability(p NetworkState, m Machine) Finding {
	forward := "forward the port of --listen at the router"
	if m.PortMapping == "" {
		forward += ", or switch on UPnP or NAT-PMP there"
	}
	switch {
	case p.Reachability == Public:
		return well("reachability", "others reach this machine directly")
	case p.Reachability == Private && p.Relayed:
		return Finding{"reachability", Warning, "others reach this machine through a relay, or a hole punched into its router; " + p.ways(), "direct is faster: " + forward}
	case p.Reachability == Private:
		return Finding{"reachability", Failing, "no other peer can reach this machine; " + p.ways(), forward + ", or name a --supernode that others reach: it relays"}
	case p.Indirect > 0:
		return Finding{"reachability", Warning, "not known, and some peers are reached through a relay only; " + p.ways(), "direct is faster: " + forward}
	}
	return Finding{"reachability", Unknown, "not known: only peers outside this machine's network can find out, and none has yet; " + p.ways(), "name a --supernode outside this network, and ask again after a minute"}
}

// ways describes how the connected peers are reached.
func (p NetworkState) ways() string {
	return fmt.Sprintf("connected directly with %s, through a relay only with %d", english.Plural(p.Connected-p.Indirect, "peer", ""), p.Indirect)
}

func checkNAT(p NetworkState) Finding {
	var symmetric, independent []string
	for _, transport := range []string{"tcp", "udp"} {
		switch p.NAT[transport] {
		case node.SymmetricNAT:
			symmetric = append(symmetric, transport)
		case node.IndependentNAT:
			independent = append(independent, transport)
		}
	}
	switch {
	case len(independent) > 0:
		return well("NAT", "the router keeps the port of %s for all destinations (endpoint-independent): holes can be punched", strings.Join(independent, " and "))
	case len(symmetric) > 0 && p.Reachability == Public:
		return well("NAT", "symmetric, which does not matter: others reach this machine directly")
	case len(symmetric) > 0:
	case slices.Contains(slices.Collect(maps.Values(p.NAT)), node.NoNAT):
		return well("NAT", "none: other peers see this machine's own public address")
	case p.Reachability == Public:
		return well("NAT", "not known, and not needed: others reach this machine directly")
	default:
		return Finding{"NAT", Unknown, "the kind of router is not known: it takes connections made from here to two peers outside this network, at different addresses", "name two supernodes outside this network with --supernode, and ask again"}
	}
	return Finding{"NAT", Warning, "the router takes another port for each destination (symmetric): between two such routers no hole can be punched, and a relay is used", "forward the port of --listen at the router, or switch on full-cone (endpoint-independent) translation there"}
}

// checkClock compares the clock with those of other peers. The tolerance covers the delay of an answer.
func checkClock(p NetworkState) Finding {
	const do = "set this machine's clock, best by NTP: peers whose clocks are more than five minutes apart do not take each other's offers"
	n := len(p.Ahead)
	if p.Doubted > n {
		return Finding{"clock", Failing, fmt.Sprintf("%d of %s have another time, by minutes", p.Doubted, english.Plural(p.Doubted+n, "peer", "")), do}
	}
	if n == 0 {
		return Finding{"clock", Unknown, "no peer has answered that it could be compared with", "ask again once peers are connected"}
	}
	ahead := slices.Sorted(slices.Values(p.Ahead))
	skew, direction := ahead[n/2], "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	if skew.Abs() > maxSkew {
		return Finding{"clock", Warning, fmt.Sprintf("%v %s the middle one of %s", skew.Abs().Round(time.Second), direction, english.Plural(n, "peer", "")), do}
	}
	return well("clock", "within %v of the middle one of %s", maxSkew, english.Plural(n, "peer", ""))
}

// checkPortMapping reports whether the router maps ports; p is nil if no peer runs.
func checkPortMapping(m Machine, p *NetworkState) Finding {
	const about = "port mapping"
	direct := p == nil || p.Reachability != Private // or not known
	switch {
	case m.PortMapping == "" && direct:
		return well(about, "no router answers that maps ports")
	case m.PortMapping == "":
		return Finding{about, Warning, "no router answers that maps ports", "switch on UPnP or NAT-PMP at the router: then others reach this machine directly"}
	case !node.IsPublic(m.Outside) && !direct:
		return Finding{about, Warning, fmt.Sprintf("the router maps ports (%s), but its own address, %s, is behind another's", m.PortMapping, m.Outside),
			"have the router before it pass on what comes, or ask the provider for a public address"}
	}
	return well(about, "the router maps ports (%s), at %s", m.PortMapping, m.Outside)
}

func checkDisk(m Machine) Finding {
	grow := max(0, m.CacheLimit-m.CacheUsed)
	found := fmt.Sprintf("%s free where the home is; the cache may take %s more", size(m.DiskFree), size(grow))
	const do = "make room, put the --home elsewhere, lower --cache-limit, or empty the cache: p2pboot cache clear"
	switch {
	case m.DiskFree < 0:
		return Finding{"disk", Unknown, "how much is free cannot be read on this system", "look whether the folder given with --home has room for --cache-limit"}
	case m.DiskFree < leastDisk:
		return Finding{"disk", Failing, found + "; no job of others is taken", do}
	case m.DiskFree < grow+spareDisk:
		return Finding{"disk", Warning, found, do}
	}
	return well("disk", "%s", found)
}

func checkFiles(m Machine) Finding {
	return checkLimit("open files", m.OpenFiles, leastFiles, plain, "raise the limit of the shell or the service that starts the peer: ulimit -n, or LimitNOFILE=")
}

func checkProcesses(m Machine) Finding {
	return checkLimit("processes", m.Processes, leastProcesses, plain, "raise the limit of the shell or the service that starts the peer: ulimit -u, or TasksMax=")
}

func checkMemory(m Machine) Finding {
	return checkLimit("memory", m.Memory, leastMemory, humanize.IBytes, "raise the limit of the control group (MemoryMax=), or offer one of the --slots")
}

// checkLimit judges a limit of the process. A value of 0 is not known; machine.Unlimited means no limit.
func checkLimit(about string, has, least uint64, format func(uint64) string, do string) Finding {
	switch {
	case has == 0:
		return Finding{about, Unknown, "the limit cannot be read on this system", fmt.Sprintf("look whether it is at least %s, or ", format(least)) + do}
	case has == machine.Unlimited:
		return well(about, "no limit")
	case has < least:
		return Finding{about, Warning, fmt.Sprintf("at most %s, which is less than %s", format(has), format(least)), do}
	}
	return well(about, "at most %s", format(has))
}

func checkKernel(m Machine) Finding {
	const system = runtime.GOOS + "/" + runtime.GOARCH
	if m.Unshared != "" {
		return Finding{"kernel", Warning, system + ": processes cannot share memory: " + m.Unshared, "jobs run all the same, slower between ranks of one machine; it takes Linux 3.17 or later"}
	}
	return well("kernel", "%s: processes can share memory", system)
}

func size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func plain(n uint64) string { return fmt.Sprint(n) }
