package peer

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
)

// fit returns the diagnostics of a machine without problems.
func fit() Diagnostics {
	return Diagnostics{
		Network: &NetworkState{
			Addresses: 2, Connected: 3, Supernodes: 1, Met: 1, Reachability: Public,
			NAT: map[string]string{"tcp": node.IndependentNAT}, Ahead: []time.Duration{time.Second, -time.Second},
		},
		Machine: Machine{
			PortMapping: "UPnP", Outside: netip.MustParseAddr("11.0.1.1"), DiskFree: 100 << 30, CacheUsed: 1 << 30, CacheLimit: 10 << 30,
			OpenFiles: leastFiles, Processes: machine.Unlimited, Memory: 8 << 30,
			Walls: walled(),
		},
	}
}

func walled() (w launch.Sandbox) {
	w.Namespaces, w.Landlock, w.Seccomp, w.LandlockVersion = true, true, true, 7
	return w
}

func TestDiagnose(t *testing.T) {
	network := func(change func(*NetworkState)) func(*Diagnostics) {
		return func(s *Diagnostics) { change(s.Network) }
	}
	machine := func(change func(*Machine)) func(*Diagnostics) {
		return func(s *Diagnostics) { change(&s.Machine) }
	}
	none := func(change func(*Diagnostics)) func(*Diagnostics) {
		return func(s *Diagnostics) { s.Network = nil; change(s) }
	}
	tests := map[string]struct {
		change func(*Diagnostics)
		about  string
		level  Level
		found  string // the finding contains this text
		do     string // and this advice
	}{
		"confined":                  {func(*Diagnostics) {}, "confinement", Well, "neither files, network nor processes", ""},
		"confined without Landlock": {machine(func(m *Machine) { m.Walls.Landlock, m.Walls.NoLandlock = false, "no Landlock" }), "confinement", Well, "second layer: no Landlock", ""},
		"files open": {machine(func(m *Machine) {
			m.Walls = launch.Sandbox{NoNamespaces: "no namespaces", NoLandlock: "no Landlock"}
		}), "confinement: file system", Warning, "no namespaces", "--require-confinement"},
		"a peer runs":          {func(*Diagnostics) {}, "peer", Well, "announces 2 addresses, and is connected with 3 peers", ""},
		"one of each":          {network(func(s *NetworkState) { s.Addresses, s.Connected = 1, 1 }), "peer", Well, "1 address, and is connected with 1 peer", ""},
		"no peer":              {none(func(*Diagnostics) {}), "peer", Warning, "none runs", "p2pboot"},
		"ports taken":          {none(func(s *Diagnostics) { s.Ports = "listen on X: in use" }), "ports", Failing, "in use", "--listen"},
		"home unusable":        {none(func(s *Diagnostics) { s.Home = "no folder"; s.Ports = "in use" }), "home", Failing, "no folder", "--home"},
		"all supernodes":       {func(*Diagnostics) {}, "supernodes", Well, "1 of 1", ""},
		"no supernode met":     {network(func(s *NetworkState) { s.Met = 0 }), "supernodes", Failing, "none of 1", "--supernode"},
		"some met":             {network(func(s *NetworkState) { s.Supernodes = 2 }), "supernodes", Warning, "1 of 2", "--supernode"},
		"none needed":          {network(func(s *NetworkState) { s.Supernodes, s.Met = 0, 0 }), "supernodes", Well, "nor needed", ""},
		"all alone":            {network(func(s *NetworkState) { s.Supernodes, s.Met, s.Connected = 0, 0, 0 }), "supernodes", Warning, "no peer is connected", "--supernode"},
		"public":               {func(*Diagnostics) {}, "reachability", Well, "directly", ""},
		"unknown":              {network(func(s *NetworkState) { s.Reachability = Auto }), "reachability", Unknown, "directly with 3 peers, through a relay only with 0", "--supernode"},
		"unknown, relay only":  {network(func(s *NetworkState) { s.Reachability, s.Indirect = Auto, 3 }), "reachability", Warning, "directly with 0 peers, through a relay only with 3", "forward the port"},
		"relayed":              {network(func(s *NetworkState) { s.Reachability, s.Relayed = Private, true }), "reachability", Warning, "relay", "forward the port"},
		"out of reach":         {network(func(s *NetworkState) { s.Reachability = Private }), "reachability", Failing, "no other peer", "relays"},
		"independent":          {func(*Diagnostics) {}, "NAT", Well, "endpoint-independent", ""},
		"independent by one":   {network(func(s *NetworkState) { s.NAT["udp"] = node.SymmetricNAT; s.Reachability = Private }), "NAT", Well, "port of tcp for", ""},
		"symmetric":            {network(func(s *NetworkState) { s.NAT["tcp"] = node.SymmetricNAT; s.Reachability, s.Relayed = Private, true }), "NAT", Warning, "symmetric", "full-cone"},
		"symmetric, mapped":    {network(func(s *NetworkState) { s.NAT["tcp"] = node.SymmetricNAT }), "NAT", Well, "does not matter", ""},
		"translation unneeded": {network(func(s *NetworkState) { s.NAT = nil }), "NAT", Well, "not needed", ""},
		"translation unknown":  {network(func(s *NetworkState) { s.NAT, s.Reachability = nil, Auto }), "NAT", Unknown, "not known", "two supernodes"},
		"no translation": {network(func(s *NetworkState) {
			s.NAT, s.Reachability, s.Relayed = map[string]string{"tcp": node.NoNAT}, Private, true
		}), "NAT", Well, "own public address", ""},
		"clock right":          {func(*Diagnostics) {}, "clock", Well, "2 peers", ""},
		"clock ahead":          {network(func(s *NetworkState) { s.Ahead = []time.Duration{0, time.Minute, time.Minute} }), "clock", Warning, "1m0s ahead of the middle one of 3 peers", "NTP"},
		"clock behind":         {network(func(s *NetworkState) { s.Ahead = []time.Duration{-time.Minute} }), "clock", Warning, "1m0s behind the middle one of 1 peer", "NTP"},
		"one clock is wrong":   {network(func(s *NetworkState) { s.Ahead[0], s.Doubted = 0, 1 }), "clock", Well, "2 peers", ""},
		"clock far off":        {network(func(s *NetworkState) { s.Ahead, s.Doubted = nil, 2 }), "clock", Failing, "2 of 2 peers", "NTP"},
		"no clock to compare":  {network(func(s *NetworkState) { s.Ahead = nil }), "clock", Unknown, "no peer has answered", "ask again"},
		"ports are mapped":     {func(*Diagnostics) {}, "port mapping", Well, "maps ports (UPnP), at 11.0.1.1", ""},
		"none is, and no need": {machine(func(m *Machine) { m.PortMapping = "" }), "port mapping", Well, "no router", ""},
		"none is": {func(s *Diagnostics) {
			s.Machine.PortMapping, s.Network.Reachability, s.Network.Relayed = "", Private, true
		}, "port mapping", Warning, "no router", "switch on UPnP"},
		"router behind one": {func(s *Diagnostics) {
			s.Machine.Outside, s.Network.Reachability, s.Network.Relayed = netip.MustParseAddr("100.64.3.1"), Private, true
		}, "port mapping", Warning, "100.64.3.1", "provider"},
		"router at a lab's": {machine(func(m *Machine) { m.Outside = netip.MustParseAddr("10.0.0.7") }), "port mapping", Well, "at 10.0.0.7", ""},
		"disk":              {func(*Diagnostics) {}, "disk", Well, "100 GiB free where the home is; the cache may take 9.0 GiB more", ""},
		"disk may fill":     {machine(func(m *Machine) { m.DiskFree = 9 << 30 }), "disk", Warning, "9.0 GiB free", "--cache-limit"},
		"disk, cache full":  {machine(func(m *Machine) { m.DiskFree, m.CacheUsed = 1<<30, 11<<30 }), "disk", Well, "0 B more", ""},
		"disk full":         {machine(func(m *Machine) { m.DiskFree = 0 }), "disk", Failing, "0 B free", "cache clear"},
		"disk unknown":      {machine(func(m *Machine) { m.DiskFree = -1 }), "disk", Unknown, "cannot be read", "--home"},
		"files":             {func(*Diagnostics) {}, "open files", Well, "at most 4096", ""},
		"few files":         {machine(func(m *Machine) { m.OpenFiles = leastFiles - 1 }), "open files", Warning, "at most 4095, which is less than 4096", "ulimit -n"},
		"files unknown":     {machine(func(m *Machine) { m.OpenFiles = 0 }), "open files", Unknown, "cannot be read", "at least 4096"},
		"processes":         {func(*Diagnostics) {}, "processes", Well, "no limit", ""},
		"few processes":     {machine(func(m *Machine) { m.Processes = 10 }), "processes", Warning, "at most 10", "TasksMax"},
		"memory":            {func(*Diagnostics) {}, "memory", Well, "8.0 GiB", ""},
		"little memory":     {machine(func(m *Machine) { m.Memory = 256 << 20 }), "memory", Warning, "256 MiB, which is less than 512 MiB", "--slots"},
		"kernel":            {func(*Diagnostics) {}, "kernel", Well, "can share memory", ""},
		"no shared memory":  {machine(func(m *Machine) { m.Unshared = "not implemented" }), "kernel", Warning, "cannot share memory: not implemented", "Linux"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := fit()
			test.change(&s)
			all := Diagnose(s)
			for _, f := range all {
				if f.About == test.about {
					if f.Level != test.level || !strings.Contains(f.Found, test.found) || !strings.Contains(f.Do, test.do) {
						t.Errorf("got %+v", f)
					}
					if (f.Do == "") != (f.Level == Well) {
						t.Errorf("advice for %s: %q", f.Level, f.Do)
					}
					if f.Level != Well && name != "home unusable" && Worst(all) != f.Level {
						t.Errorf("got %s as the worst of it all", Worst(all))
					}
					return
				}
			}
			t.Errorf("nothing of %s in %+v", test.about, all)
		})
	}
}

func TestWorst(t *testing.T) {
	of := func(levels ...Level) (all []Finding) {
		for _, l := range levels {
			all = append(all, Finding{Level: l})
		}
		return all
	}
	if got := Worst(of(Well, Failing, Warning)); got != Failing {
		t.Errorf("got %s", got)
	}
	if got := Worst(of(Unknown, Well)); got != Unknown {
		t.Errorf("got %s", got)
	}
	if got := Worst(of(Warning, Unknown)); got != Warning {
		t.Errorf("got %s", got)
	}
	if got := Worst(Diagnose(fit())); got != Well {
		t.Errorf("got %s of a machine that is fit", got)
	}
}

// TestDiagnosePeer examines a peer with a supernode, and a home without a peer.
func TestDiagnosePeer(t *testing.T) {
	skip.Long(t)
	super := boot(t, nil)
	p := boot(t, func(c *Config) { c.Supernodes = append(introducing(super), absentPeer) })
	s, err := Examine(t.Context(), p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.Network == nil || s.Network.Supernodes != 2 || s.Network.Met != 1 || len(s.Network.Ahead) != 1 || s.Network.Doubted != 0 {
		t.Errorf("got %+v, want one of two supernodes met, and its clock", s.Network)
	}
	if s.Machine.CacheLimit != p.cfg.CacheLimit<<20 || s.Machine.Memory == 0 {
		t.Errorf("got %+v", s.Machine)
	}

	idle := p.cfg
	idle.Home = shortDir(t)
	idle.Listen = p.host.Network().ListenAddresses()[:1]
	if s, err = Examine(t.Context(), idle); err != nil || s.Network != nil || s.Home != "" || !strings.Contains(s.Ports, "in use") {
		t.Errorf("got %+v, %v; want the port taken", s, err)
	}
}

func TestCanListen(t *testing.T) {
	here, foreign := ma.StringCast("/ip4/127.0.0.1/tcp/0"), ma.StringCast("/ip4/192.0.2.1/tcp/1")
	tests := map[string]struct {
		listen []ma.Multiaddr
		data   string
		wrong  string // the error contains this text; empty if there is no error
	}{
		"a free port":       {[]ma.Multiaddr{here}, "", ""},
		"one of two":        {[]ma.Multiaddr{here, foreign}, "", ""},
		"no port":           {nil, "", ""},
		"another's address": {[]ma.Multiaddr{foreign}, "none", "192.0.2.1:1"},
		"data elsewhere":    {[]ma.Multiaddr{here}, "192.0.2.1:2", "192.0.2.1:2"},
		"no data":           {[]ma.Multiaddr{here}, "none", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := canListen(Config{Listen: test.listen, DataListen: test.data})
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}
