package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
	"github.com/p2pmpi/p2pmpi/e2e/internal/igd"
	"github.com/p2pmpi/p2pmpi/e2e/internal/natpmp"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// An internet is a switch that connects machines with public addresses and homes. A home has a
// router, and its machines have private addresses.
//
//	 public   11.0.0.1                             home 2: router 11.0.1.2
//	┌──────────┐        ether: delay, loss        ┌──────────────────────────┐
//	│ eth0 ────┼──────────────┬───────────────────┼─ wan  nft: masquerading  │
//	└──────────┘              │                   │  │    tc tbf: rates      │
//	                          │                   │ lan  192.168.2.1         │
//	                       other homes            └──┼───────┬───────────────┘
//	                                              eth0 .2   eth0 .3   machines
type internet struct {
	t       *testing.T
	network *ether.Switch
	ports   int
	publics int
	homes   int
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	needs(t, "nft", "ip", "tc")
	i := &internet{t: t, network: ether.New(1)}
	t.Cleanup(i.network.Close)
	return i
}

// needs skips a test if a required command is not installed, or fails it where skipping is not
// allowed.
func needs(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			skip.Lacks(t, c+" (Debian: apt-get install nftables iproute2)")
		}
	}
}

// plug connects a namespace to the switch, and returns the number of its port.
func (i *internet) plug(ns netns, name, addr string) (port int) {
	i.t.Helper()
	err := ns.do(func() error {
		_, err := i.network.Plug(name)
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ns.runAll(i.t, fmt.Sprintf(`ip link set lo up
		ip addr add %s/8 dev %s
		ip link set %[2]s up`, addr, name))
	i.ports++
	return i.ports - 1
}

// public creates a machine with a public address that others can reach.
func (i *internet) public() *machine {
	i.t.Helper()
	ns := newNetns(i.t)
	i.publics++
	m := &machine{addr: fmt.Sprintf("11.0.0.%d", i.publics), inside: &ns}
	i.plug(ns, "eth0", m.addr)
	return m
}

// oneWay makes a machine admit only replies to its own packets, and silently drop all others.
func (m *machine) oneWay(t *testing.T) {
	t.Helper()
	m.inside.nft(t, `table inet wall {
		chain in {
			type filter hook input priority 0; policy drop
			iifname "lo" accept
			ct state established,related accept
		}
	}`)
}

// Kinds of homes: kinds of address translation, in the syntax of nftables, and others.
const (
	// cone maps each port of a machine to one port of the router, whatever the destination. It
	// admits packets from addresses to which the machine has sent.
	cone = "masquerade"
	// symmetric uses a different port for every connection.
	symmetric = "masquerade fully-random"
	// mapsPorts is symmetric, and offers port mapping.
	mapsPorts = "maps ports"
	// public has no router: its machine is reachable by all others.
	public = "nothing"
	// oneWay has no router either: its machine admits only replies.
	oneWay = "a firewall"
)

// outdoors creates a home without a router, with one machine that is public or oneWay.
func (i *internet) outdoors(kind string) *home {
	i.t.Helper()
	m := i.public()
	if kind == oneWay {
		m.oneWay(i.t)
	}
	return &home{internet: i, kind: kind, port: i.ports - 1, machines: []*machine{m}}
}

// A home is a network behind a router.
type home struct {
	*internet
	kind     string
	number   int
	router   netns
	addr     string // address of the router
	port     int    // port of the switch to which it is connected
	machines []*machine

	mapping sync.Mutex
	mapped  []natpmp.Mapping
}

// home creates a home with a number of machines. Its router forwards replies to packets from inside,
// and silently drops all others.
func (i *internet) home(kind string, machines int) *home {
	i.t.Helper()
	i.homes++
	h := &home{internet: i, kind: kind, number: i.homes, router: newNetns(i.t), addr: fmt.Sprintf("11.0.1.%d", i.homes)}
	h.port = i.plug(h.router, "wan", h.addr)
	h.router.runAll(i.t, fmt.Sprintf(`sysctl -qw net.ipv4.ip_forward=1
		ip link add lan type bridge
		ip addr add 192.168.%d.1/24 dev lan
		ip link set lan up`, h.number))
	h.router.nft(i.t, fmt.Sprintf(`table ip home {
		set blocked { type ipv4_addr; }
		chain out {
			type nat hook postrouting priority 100
			oifname "wan" %s
		}
		chain in {
			type nat hook prerouting priority -100
		}
		chain pass {
			type filter hook forward priority 0; policy drop
			ip daddr @blocked drop
			iifname "lan" accept
			ct state established,related accept
			ct status dnat accept
		}
		chain self {
			type filter hook input priority 0; policy drop
			iifname != "wan" accept
			ct state established,related accept
		}
	}`, kind))
	for n := range machines {
		h.machines = append(h.machines, h.machine(n))
	}
	return h
}

func (h *home) machine(n int) *machine {
	h.t.Helper()
	ns := newNetns(h.t)
	m := &machine{addr: fmt.Sprintf("192.168.%d.%d", h.number, n+2), inside: &ns}
	h.router.runAll(h.t, fmt.Sprintf(`ip link add p%d type veth peer name eth0 netns %s
		ip link set p%[1]d master lan up`, n, ns.path()))
	ns.runAll(h.t, fmt.Sprintf(`ip link set lo up
		ip addr add %s/24 dev eth0
		ip link set eth0 up
		ip route add default via 192.168.%d.1`, m.addr, h.number))
	return m
}

// block makes the router drop packets to another home if yes is true, and forward them otherwise.
func (h *home) block(other *home, yes bool) {
	h.t.Helper()
	what := "delete"
	if yes {
		what = "add"
	}
	h.router.run(h.t, "nft", what, "element", "ip", "home", "blocked", "{", other.addr, "}")
}

// mapByPMP makes the router map ports for its machines by NAT-PMP.
func (h *home) mapByPMP() {
	h.t.Helper()
	var conn net.PacketConn
	h.listen(func(self string) (err error) {
		conn, err = new(net.ListenConfig).ListenPacket(context.Background(), "udp4", net.JoinHostPort(self, strconv.Itoa(natpmp.Port)))
		return err
	})
	h.serve(func() { natpmp.Serve(conn, netip.MustParseAddr(h.addr), h.mapPort) }, conn)
}

// mapByUPnP makes the router map ports for its machines by UPnP.
func (h *home) mapByUPnP() {
	h.t.Helper()
	var searches net.PacketConn
	var control net.Listener
	h.listen(func(self string) error {
		lan, err := net.InterfaceByName("lan")
		if err != nil {
			return err
		}
		if searches, err = net.ListenMulticastUDP("udp4", lan, igd.Group); err != nil {
			return err
		}
		control, err = new(net.ListenConfig).Listen(context.Background(), "tcp4", net.JoinHostPort(self, "0"))
		return err
	})
	h.serve(func() { igd.Announce(searches, "http://"+control.Addr().String()+"/root.xml") }, searches)
	server := &http.Server{Handler: igd.Handler(netip.MustParseAddr(h.addr), h.mapPort), ReadHeaderTimeout: limit}
	h.serve(func() { server.Serve(control) }, server)
}

// listen creates sockets in the router's namespace; self is the router's address for its machines.
func (h *home) listen(sockets func(self string) error) {
	h.t.Helper()
	if err := h.router.do(func() error { return sockets(fmt.Sprintf("192.168.%d.1", h.number)) }); err != nil {
		h.t.Fatal(err)
	}
}

// serve runs a server for the duration of the test; closing socket ends it.
func (h *home) serve(run func(), socket io.Closer) {
	var running sync.WaitGroup
	running.Go(run) // ends with socket
	h.t.Cleanup(func() {
		socket.Close()
		running.Wait()
	})
}

// mapPort maps a port of the router to a port of a machine. A mapping without a lifetime removes the
// mapping of either port.
func (h *home) mapPort(m natpmp.Mapping) error {
	h.mapping.Lock()
	defer h.mapping.Unlock()
	h.mapped = slices.DeleteFunc(h.mapped, func(old natpmp.Mapping) bool {
		return old.Protocol == m.Protocol && (old.External == m.External || old.Internal == m.Internal)
	})
	if m.Lifetime > 0 {
		h.mapped = append(h.mapped, m)
	}
	rules := "flush chain ip home in\n"
	for _, m := range h.mapped {
		rules += fmt.Sprintf("add rule ip home in iifname wan %s dport %d dnat to %s\n", m.Protocol, m.External, m.Internal)
	}
	return h.router.do(func() error { return exec.Command("nft", rules).Run() })
}

// mappings returns the port mappings to machines.
func (h *home) mappings() []natpmp.Mapping {
	h.mapping.Lock()
	defer h.mapping.Unlock()
	return slices.Clone(h.mapped)
}

// rates limits the rates out of the home and into it, in Mbit/s.
func (h *home) rates(up, down int) {
	h.t.Helper()
	for device, mbit := range map[string]int{"wan": up, "lan": down} {
		h.router.runAll(h.t, fmt.Sprintf("tc qdisc add dev %s root tbf rate %dmbit burst 16kb latency 100ms", device, mbit))
	}
}

// distance sets delay and loss between a port and all others, in both directions.
func (i *internet) distance(port int, link ether.Link) {
	for other := range i.ports {
		i.network.Set(port, other, link)
		i.network.Set(other, port, link)
	}
}

// nft adds nftables rules to a namespace.
func (ns netns) nft(t *testing.T, rules string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.nft")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	ns.run(t, "nft", "-f", file)
}
