package localnet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/workdir"
	"github.com/p2pmpi/p2pmpi/peer"
)

// marker is the environment variable that makes this program a throw-away peer.
const marker = "P2PMPI_LOCAL_PEER"

// Settings is the configuration of one throw-away peer, which reads it from its standard input.
type Settings struct {
	Home         string           `json:"home"`      // set by Start
	Supernode    p2ppeer.AddrInfo `json:"supernode"` // introduces the peers to each other
	Network      string           `json:"network"`
	Slots        int              `json:"slots"`
	GossipPeriod time.Duration    `json:"gossipPeriod"`
	LogLevel     string           `json:"logLevel"`
}

// Child runs a throw-away peer if this process was started as one. The caller then exits with the returned
// status. Main functions call Child before anything else.
func Child() (status int, isChild bool) {
	if os.Getenv(marker) == "" {
		return 0, false
	}
	os.Unsetenv(marker) // child processes must not inherit it
	command.OneProcessor()
	if err := serve(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return command.Unavailable, true
	}
	return command.OK, true
}

// serve runs a peer until EOF on stdin.
func serve(stdin io.Reader, stdout, stderr io.Writer) error {
	var s Settings
	if err := json.NewDecoder(stdin).Decode(&s); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	defer workdir.RemoveStale() // if p2prun was killed, it did not remove its own folder
	defer os.RemoveAll(s.Home)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with p2prun or with this process
		io.Copy(io.Discard, stdin)
		cancel()
	}()
	log, err := command.Logger(stderr, s.LogLevel)
	if err != nil {
		return err
	}
	p, err := peer.New(ctx, s.config(), peer.Volunteer, log)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "ready", p.ID(), strings.Join(p.Addresses(), " "))
	<-ctx.Done()
	return p.Close()
}

func (s Settings) config() peer.Config {
	c := peer.LocalConfig()
	c.Home = s.Home
	c.Supernodes = []p2ppeer.AddrInfo{s.Supernode}
	c.Network = s.Network
	c.Slots = s.Slots
	c.GossipPeriod = s.GossipPeriod
	c.LogLevel = s.LogLevel
	return c
}
