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

// An internet is a switch on which everybody has an address that looks public, and homes
// with routers behind which nobody has one.
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

// needs skips a test that needs a command that is not installed, or fails where it must not.
func needs(t *testing.T, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			skip.Lacks(t, c+" (Debian: apt-get install nftables iproute2)")
		}
	}
}

// plug connects a namespace, and returns the number of its port.
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

// public makes a machine that everybody reaches.
func (i *internet) public() *machine {
	i.t.Helper()
	ns := newNetns(i.t)
	i.publics++
	m := &machine{addr: fmt.Sprintf("11.0.0.%d", i.publics), inside: &ns}
	i.plug(ns, "eth0", m.addr)
	return m
}

// oneWay has a machine let in only what answers something that it has said, and say to nobody
// that it does not let him in.
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

// Kinds of homes: of address translation, in the words of nftables, and others.
const (
	// cone gives what comes from one port of a machine one port of the router, whoever
	// it goes to, and lets in what comes from those it went to.
	cone = "masquerade"
	// symmetric gives every connection another port.
	symmetric = "masquerade fully-random"
	// mapsPorts is symmetric, and maps ports.
	mapsPorts = "maps ports"
	// public has no router: everybody reaches its machine.
	public = "nothing"
	// oneWay has none either: its machine lets in only what answers.
	oneWay = "a firewall"
)

// outdoors makes a home without a router, of one machine: public or oneWay.
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
	addr     string // of the router
	port     int    // where it is plugged in
	machines []*machine

	mapping sync.Mutex
	mapped  []natpmp.Mapping
}

// home makes one with so many machines. Routers pass on what answers to something that
// was said inside, and drop all else without a word.
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

// block has the router drop what goes to another home, or not any more.
func (h *home) block(other *home, yes bool) {
	h.t.Helper()
	what := "delete"
	if yes {
		what = "add"
	}
	h.router.run(h.t, "nft", what, "element", "ip", "home", "blocked", "{", other.addr, "}")
}

// mapByPMP has the router map ports for its machines: NAT-PMP.
func (h *home) mapByPMP() {
	h.t.Helper()
	var conn net.PacketConn
	h.listen(func(self string) (err error) {
		conn, err = new(net.ListenConfig).ListenPacket(context.Background(), "udp4", net.JoinHostPort(self, strconv.Itoa(natpmp.Port)))
		return err
	})
	h.serve(func() { natpmp.Serve(conn, netip.MustParseAddr(h.addr), h.lead) }, conn)
}

// mapByUPnP has the router map ports for its machines: UPnP.
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
	server := &http.Server{Handler: igd.Handler(netip.MustParseAddr(h.addr), h.lead), ReadHeaderTimeout: limit}
	h.serve(func() { server.Serve(control) }, server)
}

// listen has sockets made in the router, which is self for its machines.
func (h *home) listen(sockets func(self string) error) {
	h.t.Helper()
	if err := h.router.do(func() error { return sockets(fmt.Sprintf("192.168.%d.1", h.number)) }); err != nil {
		h.t.Fatal(err)
	}
}

// serve runs a server, which ends when a socket of it is closed, for the time of the test.
func (h *home) serve(run func(), socket io.Closer) {
	var running sync.WaitGroup
	running.Go(run) // ends with socket
	h.t.Cleanup(func() {
		socket.Close()
		running.Wait()
	})
}

// lead leads a port of the router to one of a machine until that is taken back: by a mapping
// without a lifetime, which names either port.
func (h *home) lead(m natpmp.Mapping) error {
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

// leads returns the ports that lead to a machine.
func (h *home) leads() []natpmp.Mapping {
	h.mapping.Lock()
	defer h.mapping.Unlock()
	return slices.Clone(h.mapped)
}

// rates limits what goes out of the home and what comes in, in Mbit/s.
func (h *home) rates(up, down int) {
	h.t.Helper()
	for device, mbit := range map[string]int{"wan": up, "lan": down} {
		h.router.runAll(h.t, fmt.Sprintf("tc qdisc add dev %s root tbf rate %dmbit burst 16kb latency 100ms", device, mbit))
	}
}

// distance delays and loses what goes between a port and all others, each way.
func (i *internet) distance(port int, way ether.Way) {
	for other := range i.ports {
		i.network.Set(port, other, way)
		i.network.Set(other, port, way)
	}
}

// nft adds rules to those of a namespace.
func (ns netns) nft(t *testing.T, rules string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.nft")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	ns.run(t, "nft", "-f", file)
}
