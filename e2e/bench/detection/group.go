package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// A group is a set of real processes, each on a separate machine as far as the network is
// concerned. Each has a network namespace, with a cable to the router in this process's namespace.
// With a switch in place of the router, each process would store the hardware addresses of all its
// partners. The kernel has room for only some thousand of those in all its namespaces.
type group struct {
	members []*process
	told    chan report
	known   map[report]bool // reports received so far, without their times
	wrong   map[string]int  // by fault and mode: number of verdicts about live members
	missed  map[string]int  // by fault and mode: number of missing verdicts
	fault   string          // the fault of the current turn
}

// A process is a member of a group.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	cable  string // the router's end of its cable
	about  string // its line: ID and address
	faulty bool   // a fault has been injected
}

// A report is a member's statement that another member has failed.
type report struct {
	observer, member int
	mode             string
	at               time.Time
}

// newGroup starts n members that tolerate a hang of the given length, and introduces them to each
// other.
func newGroup(ctx context.Context, n int, hang time.Duration) (*group, error) {
	g := &group{
		told:  make(chan report, 4*n*n), // more than the members ever send
		known: make(map[report]bool), wrong: make(map[string]int),
	}
	if err := newRouter(ctx); err != nil {
		return nil, err
	}
	for i := range n {
		p, err := start(ctx, i)
		if p != nil {
			g.members = append(g.members, p)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start member %d: %w", i, err), g.close())
		}
	}
	var all strings.Builder
	for i, p := range g.members {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read the identity of member %d: %w", i, err), g.close())
		}
		p.about = line
		all.WriteString(line)
	}
	for i, p := range g.members {
		if _, err := fmt.Fprintf(p.in, "%d %d %d\n%s", n, i, hang, &all); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	for i, p := range g.members {
		if _, err := p.out.ReadString('\n'); err != nil {
			return nil, errors.Join(fmt.Errorf("member %d did not connect to the others: %w", i, err), g.close())
		}
	}
	for i, p := range g.members {
		if _, err := fmt.Fprintln(p.in); err != nil {
			return nil, errors.Join(err, g.close())
		}
		go g.listen(i, p.out) // until the member ends
	}
	return g, nil
}

// lan is the network of all members. The router silently drops packets for a member whose cable is
// cut.
const lan = "10.78.0.0/16"

// newRouter creates a router without cables.
func newRouter(ctx context.Context) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	return ip(ctx, "", "route replace blackhole "+lan)
}

// start starts member i and connects it to the router.
func start(ctx context.Context, i int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("10.78.%d.%d", i/200, 1+i%200)
	p := &process{cmd: exec.CommandContext(ctx, "unshare", "--net", self, "member", "/ip4/"+address+"/tcp/4001")}
	grid.EndWithParent(p.cmd)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.plugIn(ctx, address)
}

// plugIn waits until the process is in its namespace, gives it a cable and an address, and notifies
// it.
func (p *process) plugIn(ctx context.Context, address string) error {
	if _, err := p.out.ReadString('\n'); err != nil {
		return err
	}
	pid := strconv.Itoa(p.cmd.Process.Pid)
	p.cable = "cable" + pid // unique, since a cable of a previous group and its route may still exist
	err := ip(ctx, "", fmt.Sprintf(`link add %s type veth peer name eth0 netns %s
		addr add 169.254.0.1/32 dev %[1]s
		link set %[1]s up
		route replace %[3]s/32 dev %[1]s`, p.cable, pid, address))
	if err != nil {
		return err
	}
	err = ip(ctx, pid, fmt.Sprintf(`link set lo up
		addr add %s/32 dev eth0
		link set eth0 up
		route add default via 169.254.0.1 dev eth0 onlink`, address))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.in)
	return err
}

func (g *group) listen(observer int, out io.Reader) {
	for {
		r := report{observer: observer}
		var at int64
		if _, err := fmt.Fscanln(out, &r.mode, &r.member, &at); err != nil {
			return
		}
		r.at = time.Unix(0, at)
		g.told <- r
	}
}

// close kills all members. Their cables disappear with them.
func (g *group) close() error {
	for _, p := range g.members {
		p.cmd.Process.Kill()
	}
	for _, p := range g.members {
		p.cmd.Wait() // the error only reports that it was killed
	}
	return nil
}

// A realFault is a way for a process to fail.
type realFault struct {
	name string
	end  func(p *process, ctx context.Context) error
}

var realFaults = []realFault{
	{"process killed", func(p *process, _ context.Context) error { return p.cmd.Process.Signal(syscall.SIGKILL) }},
	{"link cut", (*process).cut},
	{"process stopped", func(p *process, _ context.Context) error { return p.cmd.Process.Signal(syscall.SIGSTOP) }},
}

// cut disconnects the cable: packets are lost without an error.
func (p *process) cut(ctx context.Context) error { return ip(ctx, "", "link set "+p.cable+" down") }

// ip runs commands of ip(8), one per line, in the network namespace of a process.
func ip(ctx context.Context, pid, commands string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	if pid != "" {
		cmd = exec.CommandContext(ctx, "nsenter", "--net", "--target", pid, "ip", "-batch", "-")
	}
	cmd.Stdin = strings.NewReader(commands + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s", err, out)
	}
	return nil
}
