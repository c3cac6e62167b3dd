package grid

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// waitLimit bounds all waits except those for jobs. These usually take a second or two.
const waitLimit = time.Minute

// Root returns the root directory of the repository.
func Root(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/p2pmpi/p2pmpi").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return string(bytes.TrimSpace(dir)), nil
}

// Build builds packages, given as directories below the root of the repository, into dir. Each package is built
// in its own directory, and therefore with the dependencies of its own module.
func Build(ctx context.Context, dir string, packages ...string) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	for _, p := range packages {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/")
		cmd.Dir = filepath.Join(root, p)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p, err, out)
		}
	}
	return nil
}

// Commands are the packages whose binaries a Grid needs, as Build takes them.
var Commands = []string{"cmd/p2pboot", "cmd/p2prun"}

// A Grid is a number of peers on loopback.
type Grid struct {
	bin   string // directory of the commands
	dir   string // directory of the peers' homes
	peers []*peerProcess

	others []string // arguments of later peers, except the address of the first
}

// A peerProcess is a running p2pboot.
type peerProcess struct {
	home    string
	address string // address at which others find it
	cmd     *exec.Cmd
	log     bytes.Buffer
	killed  bool
}

// Boot boots peers with the given number of slots each. The commands are in bin, and the peers' homes in dir.
// The first peer introduces the others. Each peer gets the options in more.
func Boot(ctx context.Context, bin, dir string, peers, slots int, more ...string) (*Grid, error) {
	args := append([]string{"--listen", onLoopback, "--slots", strconv.Itoa(slots)}, more...)
	return boot(ctx, bin, dir, peers, args, args)
}

// BootRelayed is like Boot, but adds a first peer without slots that relays for the others. The
// others do not listen, so they cannot reach each other directly.
func BootRelayed(ctx context.Context, bin, dir string, peers, slots int) (*Grid, error) {
	return boot(ctx, bin, dir, 1+peers,
		[]string{"--listen", onLoopback, "--slots", "0", "--nat", "--reachability", "public"},
		[]string{"--listen", "none", "--slots", strconv.Itoa(slots), "--nat", "--reachability", "private"})
}

// BootApart is like Boot, but adds a first peer without slots that only submits. The submitter therefore
// survives the loss of any peer of a job.
func BootApart(ctx context.Context, bin, dir string, peers, slots int) (*Grid, error) {
	return boot(ctx, bin, dir, 1+peers,
		[]string{"--listen", onLoopback, "--slots", "0"},
		[]string{"--listen", onLoopback, "--slots", strconv.Itoa(slots)})
}

const onLoopback = "/ip4/127.0.0.1/tcp/0"

func boot(ctx context.Context, bin, dir string, peers int, first, others []string) (*Grid, error) {
	g := &Grid{bin: bin, dir: dir, others: others}
	args := first
	for i := range peers {
		p, err := g.boot(ctx, fmt.Sprintf("peer%d", i), args)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.peers = append(g.peers, p)
		args = g.later()
	}
	return g, nil
}

// later returns the arguments of all peers but the first.
func (g *Grid) later() []string {
	return append(slices.Clone(g.others), "--supernode", g.peers[0].address)
}

func (g *Grid) boot(ctx context.Context, name string, args []string) (*peerProcess, error) {
	p := &peerProcess{home: filepath.Join(g.dir, name)}
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		return nil, err
	}
	p.cmd = g.command(ctx, "p2pboot", append([]string{"--home", p.home, "--machine", "none"}, args...)...)
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	// The peer prints one line, or ends and closes its output.
	overdue := time.AfterFunc(waitLimit, func() { p.cmd.Process.Kill() })
	defer overdue.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 || words[0] != "ready" {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		return nil, fmt.Errorf("boot %s: printed %q instead of the ready line\n%s", name, line, &p.log)
	}
	p.address = words[2]
	return p, nil
}

// command returns a command of this project that runs without the owner's configuration.
func (g *Grid) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(g.bin, name), args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "TMPDIR=" + os.TempDir(),
		"P2PMPI_MDNS=false", "P2PMPI_NAT=false", "P2PMPI_ACCEPT=native",
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	EndWithParent(cmd)
	return cmd
}

// Command returns p2prun at the first peer with these arguments, to be started. The end of ctx
// cancels the job.
func (g *Grid) Command(ctx context.Context, args ...string) *exec.Cmd {
	return g.command(ctx, "p2prun", append([]string{"--home", g.peers[0].home}, args...)...)
}

// Run runs p2prun at the first peer with these arguments, in dir, and returns the ranks' output.
// The end of ctx cancels the job.
func (g *Grid) Run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := g.Command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("p2prun: %w\n%s", err, &stderr)
	}
	return out, nil
}

// Close halts the peers, and returns when all have ended.
func (g *Grid) Close() error {
	for _, p := range g.peers {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	var errs []error
	for _, p := range g.peers {
		overdue := time.AfterFunc(waitLimit, func() { p.cmd.Process.Kill() })
		if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
			errs = append(errs, fmt.Errorf("halt %s: %w", p.home, err))
		}
		overdue.Stop()
	}
	return errors.Join(errs...)
}
