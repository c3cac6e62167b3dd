package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// A netns is a network namespace: separate interfaces, addresses and routes. It has no name. It exists as long
// as this file is open or a process runs in it, so no namespace is left even after a test was killed.
type netns struct{ file *os.File }

// newNetns creates an empty namespace for the duration of the test. Without permission to do that, it skips the
// test, or fails it where skipping is not allowed.
func newNetns(t *testing.T) netns {
	t.Helper()
	var ns netns
	err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		ns.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if errors.Is(err, unix.EPERM) {
		skip.Lacks(t, "root, or a user namespace: unshare --user --map-root-user --net go test ./e2e/ -run LAN")
	}
	if err != nil {
		t.Fatalf("create a network namespace: %v", err)
	}
	t.Cleanup(func() { ns.file.Close() })
	return ns
}

// do runs f on a thread inside the namespace: processes that f starts begin there.
func (ns netns) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
}

// onThread runs f on a thread of its own, and returns the thread to its namespace afterwards.
func onThread(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	result := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		return errors.Join(result, fmt.Errorf("thread is lost in a namespace: %w", err)) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return result
}

// path is the name of the namespace for the tools of iproute2.
func (ns netns) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.file.Fd()) }

// run runs a command inside the namespace.
func (ns netns) run(t *testing.T, words ...string) {
	t.Helper()
	err := ns.do(func() error {
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("run %s: %w\n%s", strings.Join(words, " "), err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("in a network namespace: %v", err)
	}
}

// runAll runs a command for each line, inside the namespace.
func (ns netns) runAll(t *testing.T, commands string) {
	t.Helper()
	for line := range strings.Lines(commands) {
		ns.run(t, strings.Fields(line)...)
	}
}

// A port connects a machine to a switch.
type port struct {
	t      *testing.T
	hub    netns // the switch
	name   string
	inside netns // the machine
}

// newLAN creates a switch with a number of machines, with the addresses 10.77.0.1 and up. The network
// has no connection to the outside.
//
//	   hub         machine 0            machine 1
//	┌───────┐     ┌──────────────┐     ┌──────────────┐
//	│ lan   │  ┌──┤ eth0  .1     │  ┌──┤ eth0  .2     │
//	│  ├ p0─┼──┘  └──────────────┘  │  └──────────────┘
//	│  └ p1─┼───────────────────────┘
//	└───────┘   veth: a cable
func newLAN(t *testing.T, machines int) []*machine {
	t.Helper()
	hub := newSwitch(t)
	var all []*machine
	for i := range machines {
		p := &port{t: t, hub: hub, name: fmt.Sprintf("p%d", i), inside: newNetns(t)}
		all = append(all, p.machine(i+1))
	}
	return all
}

// A site is a switch with some machines, and one uplink to all other sites.
type site struct {
	uplink   *port // inside it, the switch's eth0
	machines []*machine
}

// newSites creates sites with the given numbers of machines. The machines have the addresses of
// newLAN; those of the submitter's site come first.
//
//	   hub         site 0         machine 0
//	┌───────┐     ┌────────┐     ┌──────────────┐
//	│ lan   │  ┌──┤ eth0   │  ┌──┤ eth0  .1     │
//	│  ├ p0─┼──┘  │ lan    │  │  └──────────────┘
//	│  └ p1 │     │  └ p0 ─┼──┘
//	└───────┘     └────────┘
func newSites(t *testing.T, sizes ...int) (sites []*site) {
	t.Helper()
	hub := newSwitch(t)
	number := 0
	for i, size := range sizes {
		inside := newSwitch(t)
		s := &site{uplink: &port{t: t, hub: hub, name: fmt.Sprintf("p%d", i), inside: inside}}
		s.uplink.plug()
		inside.runAll(t, `ip link set eth0 master lan up`)
		for range size {
			number++
			p := &port{t: t, hub: inside, name: fmt.Sprintf("p%d", number), inside: newNetns(t)}
			s.machines = append(s.machines, p.machine(number))
		}
		sites = append(sites, s)
	}
	return sites
}

// newSwitch creates a namespace with a bridge, lan.
func newSwitch(t *testing.T) netns {
	t.Helper()
	ns := newNetns(t)
	ns.runAll(t, `ip link add lan type bridge
		ip link set lan up`)
	return ns
}

// plug connects the port at the switch with eth0 inside.
func (p *port) plug() {
	p.t.Helper()
	p.hub.runAll(p.t, fmt.Sprintf(`ip link add %s type veth peer name eth0 netns %s
		ip link set %[1]s master lan up`, p.name, p.inside.path()))
}

// machine connects a machine to the port; number is its number among all machines.
func (p *port) machine(number int) *machine {
	p.t.Helper()
	m := &machine{addr: fmt.Sprintf("10.77.0.%d", number), inside: &p.inside, lan: p}
	p.plug()
	p.inside.configure(p.t, m.addr)
	return m
}

// configure gives the namespace's eth0 an address, and a default route, which multicast needs.
func (ns netns) configure(t *testing.T, addr string) {
	t.Helper()
	ns.runAll(t, fmt.Sprintf(`ip link set lo up
		ip addr add %s/24 dev eth0
		ip link set eth0 up
		ip route add default dev eth0`, addr))
}

// addresses gives a machine of newLAN n addresses, including its own, and returns them as origins.
func (m *machine) addresses(t *testing.T, n int) []origin {
	t.Helper()
	all := []origin{{*m.inside, m.addr}}
	for i := range n - 1 {
		addr := fmt.Sprintf("10.77.0.%d", 100+i)
		m.inside.run(t, "ip", "addr", "add", addr+"/24", "dev", "eth0")
		all = append(all, origin{*m.inside, addr})
	}
	return all
}

// An origin is an address in a namespace, from which the test itself dials TCP.
type origin struct {
	inside netns
	addr   string
}

// DialContext implements tcp.ContextDialer.
func (o origin) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(o.addr)}}
	err = o.inside.do(func() (err error) { // a dial to a single address runs on this thread
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// option makes a libp2p host dial only from this address.
func (o origin) option() libp2p.Option {
	dialer := func(ma.Multiaddr) (tcp.ContextDialer, error) { return o, nil }
	return libp2p.ChainOptions(libp2p.Transport(tcp.NewTCPTransport, tcp.WithDialerForAddr(dialer)), libp2p.DisableRelay())
}

// newEther creates machines with the addresses of newLAN, on a switch that can do more than the kernel's switch.
func newEther(t *testing.T, seed uint64, machines int) ([]*machine, *ether.Switch) {
	t.Helper()
	network := ether.New(seed)
	t.Cleanup(network.Close)
	var all []*machine
	for i := range machines {
		ns := newNetns(t)
		err := ns.do(func() error {
			_, err := network.Plug("eth0")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{addr: fmt.Sprintf("10.77.0.%d", i+1), inside: &ns}
		ns.configure(t, m.addr)
		all = append(all, m)
	}
	return all, network
}

// cut disconnects the cable: packets are lost without an error.
func (p *port) cut() {
	p.t.Helper()
	p.hub.run(p.t, "ip", "link", "set", p.name, "down")
}

// heal reconnects the cable.
func (p *port) heal() {
	p.t.Helper()
	p.hub.run(p.t, "ip", "link", "set", p.name, "up")
}

// unplug disconnects the cable for a time.
func (p *port) unplug(d time.Duration) {
	p.t.Helper()
	p.cut()
	time.Sleep(d) // the time under test
	p.heal()
}

// isolate makes the switch drop all packets between this port and other isolated ports, without an
// error, as firewalls in front of the machines would.
func (p *port) isolate() {
	p.t.Helper()
	p.hub.run(p.t, "ip", "link", "set", p.name, "type", "bridge_slave", "isolated", "on")
}

// admit ends isolate.
func (p *port) admit() {
	p.t.Helper()
	p.hub.run(p.t, "ip", "link", "set", p.name, "type", "bridge_slave", "isolated", "off")
}

// slow limits the cable to a rate in Mbit/s in each direction, with a queue of 50 ms.
func (p *port) slow(mbit int) {
	p.t.Helper()
	limit := fmt.Sprintf("root tbf rate %dmbit burst 16kb latency 50ms", mbit)
	p.hub.runAll(p.t, "tc qdisc add dev "+p.name+" "+limit)
	p.inside.runAll(p.t, "tc qdisc add dev eth0 "+limit)
}

// lossy drops a percentage of all packets, in each direction. The filter is classic BPF, which needs no tool
// but tc and no module: "load a random word; below the threshold return 2 (drop), else 0 (pass)".
func (p *port) lossy(percent int) {
	p.t.Helper()
	const random = 0xfffff000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM
	filter := fmt.Sprintf("4,32 0 0 %d,53 0 1 %d,6 0 0 0,6 0 0 2", int64(random), int64(percent)<<32/100)
	p.inside.run(p.t, "tc", "qdisc", "add", "dev", "eth0", "clsact")
	for _, direction := range []string{"ingress", "egress"} {
		p.inside.run(p.t, "tc", "filter", "add", "dev", "eth0", direction, "bpf", "direct-action", "bytecode", filter)
	}
}
