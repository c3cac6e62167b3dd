package doctor

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// fit returns the diagnostics of a machine without problems.
func fit() Facts {
	return Facts{
		Network: &Network{
			Addresses: 2, Connected: 3, Supernodes: 1, Met: 1, Reachability: node.Public,
			NAT: map[string]string{"tcp": node.IndependentNAT}, Ahead: []time.Duration{time.Second, -time.Second},
		},
		Machine: Machine{
			PortMapping: "UPnP", Outside: netip.MustParseAddr("11.0.1.1"), DiskFree: 100 << 30, CacheUsed: 1 << 30, CacheLimit: 10 << 30,
			OpenFiles: leastFiles, Processes: machine.Unlimited, Memory: 8 << 30,
			Sandbox: sandboxed(),
		},
	}
}

func sandboxed() (w launch.Sandbox) {
	w.Namespaces, w.Landlock, w.Seccomp, w.LandlockVersion = true, true, true, 7
	return w
}

func TestDiagnose(t *testing.T) {
	network := func(change func(*Network)) func(*Facts) {
		return func(s *Facts) { change(s.Network) }
	}
	machine := func(change func(*Machine)) func(*Facts) {
		return func(s *Facts) { change(&s.Machine) }
	}
	none := func(change func(*Facts)) func(*Facts) {
		return func(s *Facts) { s.Network = nil; change(s) }
	}
	tests := map[string]struct {
		change func(*Facts)
		about  string
		level  Level
		found  string // the finding contains this text
		do     string // and this advice
	}{
		"confined":                  {func(*Facts) {}, "confinement", Well, "no access to the files, network and processes", ""},
		"confined without Landlock": {machine(func(m *Machine) { m.Sandbox.Landlock, m.Sandbox.NoLandlock = false, "no Landlock" }), "confinement", Well, "second layer: no Landlock", ""},
		"files not confined": {machine(func(m *Machine) {
			m.Sandbox = launch.Sandbox{NoNamespaces: "no namespaces", NoLandlock: "no Landlock"}
		}), "confinement: file system", Warning, "no namespaces", "--require-confinement"},
		"a peer runs":                   {func(*Facts) {}, "peer", Well, "announces 2 addresses, connected to 3 peers", ""},
		"one address and one peer":      {network(func(s *Network) { s.Addresses, s.Connected = 1, 1 }), "peer", Well, "1 address, connected to 1 peer", ""},
		"no peer":                       {none(func(*Facts) {}), "peer", Warning, "no peer runs", "p2pboot"},
		"ports taken":                   {none(func(s *Facts) { s.Ports = "listen on X: in use" }), "ports", Failing, "in use", "--listen"},
		"home unusable":                 {none(func(s *Facts) { s.Home = "no folder"; s.Ports = "in use" }), "home", Failing, "no folder", "--home"},
		"all supernodes":                {func(*Facts) {}, "supernodes", Well, "1 of 1", ""},
		"no supernode met":              {network(func(s *Network) { s.Met = 0 }), "supernodes", Failing, "none of 1", "--supernode"},
		"some supernodes met":           {network(func(s *Network) { s.Supernodes = 2 }), "supernodes", Warning, "1 of 2", "--supernode"},
		"no supernode needed":           {network(func(s *Network) { s.Supernodes, s.Met = 0, 0 }), "supernodes", Well, "none is needed", ""},
		"no supernode and no peer":      {network(func(s *Network) { s.Supernodes, s.Met, s.Connected = 0, 0, 0 }), "supernodes", Warning, "no peer is connected", "--supernode"},
		"public":                        {func(*Facts) {}, "reachability", Well, "directly", ""},
		"unknown":                       {network(func(s *Network) { s.Reachability = node.Auto }), "reachability", Unknown, "directly to 3 peers, only through a relay to 0", "--supernode"},
		"unknown, relay only":           {network(func(s *Network) { s.Reachability, s.Indirect = node.Auto, 3 }), "reachability", Warning, "directly to 0 peers, only through a relay to 3", "forward the port"},
		"relayed":                       {network(func(s *Network) { s.Reachability, s.Relayed = node.Private, true }), "reachability", Warning, "relay", "forward the port"},
		"out of reach":                  {network(func(s *Network) { s.Reachability = node.Private }), "reachability", Failing, "no other peer", "relays"},
		"independent":                   {func(*Facts) {}, "NAT", Well, "endpoint-independent", ""},
		"independent for one transport": {network(func(s *Network) { s.NAT["udp"] = node.SymmetricNAT; s.Reachability = node.Private }), "NAT", Well, "port of tcp for", ""},
		"symmetric":                     {network(func(s *Network) { s.NAT["tcp"] = node.SymmetricNAT; s.Reachability, s.Relayed = node.Private, true }), "NAT", Warning, "symmetric", "full-cone"},
		"symmetric, mapped":             {network(func(s *Network) { s.NAT["tcp"] = node.SymmetricNAT }), "NAT", Well, "other peers can connect", ""},
		"no translation needed":         {network(func(s *Network) { s.NAT = nil }), "NAT", Well, "other peers can connect", ""},
		"translation unknown":           {network(func(s *Network) { s.NAT, s.Reachability = nil, node.Auto }), "NAT", Unknown, "is unknown", "two supernodes"},
		"no translation": {network(func(s *Network) {
			s.NAT, s.Reachability, s.Relayed = map[string]string{"tcp": node.NoNAT}, node.Private, true
		}), "NAT", Well, "own public address", ""},
		"clock right":            {func(*Facts) {}, "clock", Well, "2 peers", ""},
		"clock ahead":            {network(func(s *Network) { s.Ahead = []time.Duration{0, time.Minute, time.Minute} }), "clock", Warning, "1m0s ahead of the median of 3 peers", "NTP"},
		"clock behind":           {network(func(s *Network) { s.Ahead = []time.Duration{-time.Minute} }), "clock", Warning, "1m0s behind the median of 1 peer", "NTP"},
		"one clock is wrong":     {network(func(s *Network) { s.Ahead[0], s.Doubted = 0, 1 }), "clock", Well, "2 peers", ""},
		"clock far off":          {network(func(s *Network) { s.Ahead, s.Doubted = nil, 2 }), "clock", Failing, "2 of 2 peers", "NTP"},
		"no clock to compare":    {network(func(s *Network) { s.Ahead = nil }), "clock", Unknown, "no peer has answered", "again"},
		"ports are mapped":       {func(*Facts) {}, "port mapping", Well, "maps ports (UPnP) at 11.0.1.1", ""},
		"no mapping, not needed": {machine(func(m *Machine) { m.PortMapping = "" }), "port mapping", Well, "no router", ""},
		"no mapping": {func(s *Facts) {
			s.Machine.PortMapping, s.Network.Reachability, s.Network.Relayed = "", node.Private, true
		}, "port mapping", Warning, "no router", "enable UPnP"},
		"router behind another": {func(s *Facts) {
			s.Machine.Outside, s.Network.Reachability, s.Network.Relayed = netip.MustParseAddr("100.64.3.1"), node.Private, true
		}, "port mapping", Warning, "100.64.3.1", "provider"},
		"router behind a lab's router": {machine(func(m *Machine) { m.Outside = netip.MustParseAddr("10.0.0.7") }), "port mapping", Well, "at 10.0.0.7", ""},
		"disk":                         {func(*Facts) {}, "disk", Well, "100 GiB free in the file system of the home; the cache may grow by 9.0 GiB", ""},
		"disk may fill":                {machine(func(m *Machine) { m.DiskFree = 9 << 30 }), "disk", Warning, "9.0 GiB free", "--cache-limit"},
		"disk, cache full":             {machine(func(m *Machine) { m.DiskFree, m.CacheUsed = 1<<30, 11<<30 }), "disk", Well, "grow by 0 B", ""},
		"disk full":                    {machine(func(m *Machine) { m.DiskFree = 0 }), "disk", Failing, "0 B free", "cache clear"},
		"disk unknown":                 {machine(func(m *Machine) { m.DiskFree = -1 }), "disk", Unknown, "cannot be determined", "--home"},
		"files":                        {func(*Facts) {}, "open files", Well, "at most 4096", ""},
		"few files":                    {machine(func(m *Machine) { m.OpenFiles = leastFiles - 1 }), "open files", Warning, "at most 4095, which is less than 4096", "ulimit -n"},
		"files unknown":                {machine(func(m *Machine) { m.OpenFiles = 0 }), "open files", Unknown, "cannot be determined", "less than 4096"},
		"processes":                    {func(*Facts) {}, "processes", Well, "no limit", ""},
		"few processes":                {machine(func(m *Machine) { m.Processes = 10 }), "processes", Warning, "at most 10", "TasksMax"},
		"memory":                       {func(*Facts) {}, "memory", Well, "8.0 GiB", ""},
		"little memory":                {machine(func(m *Machine) { m.Memory = 256 << 20 }), "memory", Warning, "256 MiB, which is less than 512 MiB", "--slots"},
		"kernel":                       {func(*Facts) {}, "kernel", Well, "can share memory", ""},
		"no shared memory":             {machine(func(m *Machine) { m.Unshared = "not implemented" }), "kernel", Warning, "cannot share memory: not implemented", "Linux"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := fit()
			test.change(&s)
			all := Diagnose(s)
			for _, f := range all {
				if f.About == test.about {
					if f.Level != test.level || !strings.Contains(f.Found, test.found) || !strings.Contains(f.Do, test.do) {
						t.Errorf("the finding is %+v", f)
					}
					if (f.Do == "") != (f.Level == Well) {
						t.Errorf("advice for %s: %q", f.Level, f.Do)
					}
					if f.Level != Well && name != "home unusable" && Worst(all) != f.Level {
						t.Errorf("got %s as the worst level", Worst(all))
					}
					return
				}
			}
			t.Errorf("no finding about %s in %+v", test.about, all)
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
		t.Errorf("the worst level is %s, want that of a failure", got)
	}
	if got := Worst(of(Unknown, Well)); got != Unknown {
		t.Errorf("the worst level is %s, want unknown", got)
	}
	if got := Worst(of(Warning, Unknown)); got != Warning {
		t.Errorf("the worst level is %s, want that of a warning", got)
	}
	if got := Worst(Diagnose(fit())); got != Well {
		t.Errorf("got %s for a machine without problems", got)
	}
}

func TestCanListen(t *testing.T) {
	here, foreign := ma.StringCast("/ip4/127.0.0.1/tcp/0"), ma.StringCast("/ip4/192.0.2.1/tcp/1")
	tests := map[string]struct {
		listen []ma.Multiaddr
		data   string
		wrong  string // the error contains this text, or empty if there is no error
	}{
		"a free port":       {[]ma.Multiaddr{here}, "", ""},
		"one of two":        {[]ma.Multiaddr{here, foreign}, "", ""},
		"no port":           {nil, "", ""},
		"another's address": {[]ma.Multiaddr{foreign}, "", "192.0.2.1:1"},
		"data elsewhere":    {[]ma.Multiaddr{here}, "192.0.2.1:2", "192.0.2.1:2"},
		"no data":           {[]ma.Multiaddr{here}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := CanListen(test.listen, test.data)
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}

func TestLimitsThatAreNotEnforced(t *testing.T) {
	var g status.Granted
	if got := checkGranted(nil); got != nil {
		t.Errorf("the check without a peer found %v", got)
	}
	if got := checkGranted(&g); len(got) != 2 || got[0].Level != Well {
		t.Errorf("the check with all limits enforced found %v", got)
	}
	g.Unenforced = []launch.Unenforced{
		{Limit: limits.CPU, Why: "no such controller", Instead: "programs have a low priority"},
		{Limit: limits.Disk, Why: "btrfs", Instead: "only the data of existing files is measured"},
	}
	got := checkGranted(&g)
	if len(got) != 3 || got[0].Level != Warning || !strings.Contains(got[0].Found, "no such controller; instead, programs") || !strings.Contains(got[0].Do, "Delegate=yes") {
		t.Errorf("the check with two limits not enforced found %v", got)
	}
	if got[1].Level != Warning || !strings.Contains(got[1].Do, "file system") {
		t.Errorf("the check with the disk limit not enforced found %v", got[1])
	}
}

// TestDiskLimitsAreApproximateForNativePrograms checks that disk limits are exact only where other users may not
// run native programs.
func TestDiskLimitsAreApproximateForNativePrograms(t *testing.T) {
	native, modules := []policy.Kind{policy.Native, policy.Wasm}, []policy.Kind{policy.Wasm}
	for name, tt := range map[string]struct {
		terms []policy.Terms
		want  string
	}{
		"modules of everyone":         {[]policy.Terms{{Class: policy.Mine, Kinds: native}, {Class: policy.Everyone, Kinds: modules}}, "exact"},
		"native programs of everyone": {[]policy.Terms{{Class: policy.Mine, Kinds: native}, {Class: policy.Everyone, Kinds: native}}, "approximate"},
		"native programs of some":     {[]policy.Terms{{Class: policy.Allowed, Kinds: native}, {Class: policy.Everyone, Kinds: modules}}, "approximate"},
	} {
		if f := checkDiskLimits(status.Granted{Terms: tt.terms}); f.Level != Well || !strings.HasPrefix(f.Found, tt.want) {
			t.Errorf("%s: the check found %v", name, f)
		}
	}
}
