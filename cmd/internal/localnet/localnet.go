package localnet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config determines the peers to start.
type Config struct {
	Settings        // of each peer
	Dir      string // empty folder for the homes
	Peers    int
	Stderr   *os.File
}

// A Net is a set of throw-away peers.
type Net struct {
	mu    sync.Mutex
	peers map[string]*child // keyed by peer ID
}

// A child is one throw-away peer.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	home  string
}

// startTimeout bounds the start of one peer on a machine that starts all of them at the same time.
const startTimeout = 60 * time.Second

// closeTimeout is how long Close waits for peers to end by themselves.
const closeTimeout = 5 * time.Second

// Start starts the peers and returns when all are ready. Unless it fails, the caller must call Close.
func Start(ctx context.Context, c Config) (*Net, error) {
	n := &Net{peers: make(map[string]*child)}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := os.Mkdir(filepath.Join(c.Dir, modules), 0o700); err != nil {
		return nil, fmt.Errorf("start local peers: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.Peers {
		group.Go(func() error { return n.start(ctx, c, filepath.Join(c.Dir, strconv.Itoa(i))) })
	}
	if err := group.Wait(); err != nil {
		n.Close()
		return nil, fmt.Errorf("start local peers: %w", err)
	}
	return n, nil
}

// modules is the folder of compiled modules, which all peers share.
const modules = "modules"

// start starts one peer and waits until it is ready.
func (n *Net) start(ctx context.Context, c Config, home string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	err = os.Mkdir(home, 0o700)
	if err == nil {
		err = os.Symlink(filepath.Join("..", modules), filepath.Join(home, modules))
	}
	if err != nil {
		return err
	}
	ch := &child{cmd: exec.CommandContext(context.WithoutCancel(ctx), self), home: home} // ended by end
	ch.cmd.Env = append(os.Environ(), marker+"=1")
	ch.cmd.Stderr = c.Stderr
	// Ctrl-C must reach only p2prun, which then ends the peers properly.
	ch.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := ch.cmd.StdinPipe()
	if err != nil {
		return err
	}
	ch.stdin = stdin
	stdout, err := ch.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := ch.cmd.Start(); err != nil {
		return err
	}
	id, err := ch.await(ctx, c, stdin, stdout)
	if err != nil {
		ch.end(0)
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers[id] = ch
	return nil
}

// await sends the peer its settings and waits for its ready line.
func (c *child) await(ctx context.Context, cfg Config, stdin io.Writer, stdout io.Reader) (id string, err error) {
	stop := context.AfterFunc(ctx, func() { c.cmd.Process.Kill() })
	defer stop()
	cfg.Home = c.home
	if err := json.NewEncoder(stdin).Encode(cfg.Settings); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", errors.New("a peer exited before it was ready")
	}
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "ready" {
		return "", fmt.Errorf("a peer printed %.80q instead of ready", line)
	}
	return words[1], nil
}

// Kill kills the peer with the given ID with SIGKILL, like a crash of its machine, and returns when its
// process has ended.
func (n *Net) Kill(id string) error {
	n.mu.Lock()
	c := n.peers[id]
	delete(n.peers, id)
	n.mu.Unlock()
	if c == nil {
		return fmt.Errorf("kill peer %s: not one of the local peers", id)
	}
	c.end(0)
	return nil
}

// end gives the peer the time timeout to end by itself, then kills it, and removes its home.
func (c *child) end(timeout time.Duration) {
	if timeout > 0 {
		c.stdin.Close()
	}
	timer := time.AfterFunc(timeout, func() { c.cmd.Process.Kill() })
	defer timer.Stop()
	c.cmd.Wait() // returns the error of a killed process
	c.stdin.Close()
	os.RemoveAll(c.home)
}

// Close ends all peers and returns when their processes have ended.
func (n *Net) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ending sync.WaitGroup
	for _, c := range n.peers {
		ending.Go(func() { c.end(closeTimeout) })
	}
	ending.Wait()
	clear(n.peers)
}
