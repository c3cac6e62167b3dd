package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/localnet"
	"github.com/p2pmpi/p2pmpi/cmd/internal/workdir"
	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// A session is the connection to the network: the peer that runs on the home, or a peer of p2prun's own
// that lives as long as p2prun. Exactly one of client and own is set.
type session struct {
	home   string // home on which open looked for a running peer
	client *control.Client
	own    *peer.Peer
	net    *localnet.Net // with --local

	done   chan struct{} // closed by close
	timers sync.WaitGroup
}

// open connects to the peer on the home, or starts its own peer if none is running. With --local it always
// starts its own peer, and the throw-away peers.
func open(ctx context.Context, cfg peer.Config, opt peer.RunOptions, work *workdir.Dir, stderr io.Writer) (*session, error) {
	s := &session{home: cfg.Home, done: make(chan struct{})}
	var err error
	if opt.Local == 0 {
		s.client, err = control.Dial(ctx, cfg.Home)
		if err == nil {
			if err = s.checkNetwork(ctx, cfg); err != nil {
				s.close()
				return nil, err
			}
			return s, nil
		}
		if _, unusable := errors.AsType[*homedir.Error](err); unusable || !errors.Is(err, control.ErrNoPeer) {
			return nil, command.FailHome(err)
		}
	}
	if err := s.join(ctx, cfg, opt, work, stderr); err != nil {
		s.close()
		return nil, failure(ctx, err)
	}
	return s, nil
}

// checkNetwork rejects the peer on the home if the user has named a network to which it does not belong. The
// program is meant only for peers of the named network.
func (s *session) checkNetwork(ctx context.Context, cfg peer.Config) error {
	if cfg.Token == "" && cfg.Network == peer.DefaultConfig().Network {
		return nil
	}
	wanted, err := cfg.NetworkChoice().ID()
	if err != nil {
		return command.Fail(command.Usage, err, "")
	}
	status, err := s.client.Status(ctx)
	if err != nil {
		return failure(ctx, err)
	}
	if status.Network != wanted {
		return command.Fail(command.Usage, fmt.Errorf("the peer on home %s belongs to network %s, not %s", s.home, status.Network, wanted), "choose another --home")
	}
	return nil
}

// join starts a peer of p2prun's own, in the network or in a local one on this machine.
func (s *session) join(ctx context.Context, cfg peer.Config, opt peer.RunOptions, work *workdir.Dir, stderr io.Writer) error {
	log, err := command.Logger(stderr, cfg.LogLevel)
	if err != nil {
		return err
	}
	role := peer.SubmitOnly
	network, err := cfg.NetworkChoice().ID()
	if err != nil && opt.Local == 0 {
		return command.Fail(command.Usage, err, "")
	}
	cfg.Jobs, cfg.PeersFile = homedir.JobsOf(cfg.Home), homedir.PeersOf(cfg.Home, network)
	cfg.MemberOf = cfg.Home
	if opt.Local > 0 {
		role = peer.Introducer
		local := peer.LocalConfig()
		local.GossipPeriod, local.CacheLimit, local.LogLevel = cfg.GossipPeriod, cfg.CacheLimit, cfg.LogLevel
		local.ToleratedHang, local.Detector = cfg.ToleratedHang, cfg.Detector
		cfg = local
	}
	if cfg.Home, err = work.Sub("own"); err != nil {
		return err
	}
	homes, err := work.Sub("peers")
	if err != nil {
		return err
	}
	if s.own, err = peer.New(ctx, cfg, role, log); err != nil || opt.Local == 0 {
		return err
	}
	s.net, err = localnet.Start(ctx, localnet.Config{
		Settings: localnet.Settings{
			Supernode: s.own.AddrInfo(), Network: cfg.Network, Slots: localSlots(opt), GossipPeriod: cfg.GossipPeriod,
			LogLevel: "error", // --lose may kill a peer, and warnings about that would be noise
		},
		Dir: homes, Peers: opt.Local, Stderr: command.File(stderr),
	})
	return err
}

// localSlots returns how many slots each peer of --local needs for the job to fit. If the number of
// replicas is not known yet, each peer has room for one replica of each rank.
func localSlots(opt peer.RunOptions) int {
	if opt.Replicas == peer.AutoReplicas {
		return opt.Ranks
	}
	return (opt.Ranks*int(opt.Replicas) + opt.Local - 1) / opt.Local
}

func (s *session) candidates(ctx context.Context, wanted discovery.Filter) ([]submit.Candidate, error) {
	if s.client != nil {
		return s.client.Candidates(ctx, wanted)
	}
	return s.own.Submitter().Candidates(ctx, wanted)
}

// mine adds the peer on the home to the peers that belong to the user.
func (s *session) mine(ctx context.Context, wanted *discovery.Filter) error {
	if s.client != nil {
		status, err := s.client.Status(ctx)
		if err != nil {
			return failure(ctx, err)
		}
		id, err := p2ppeer.Decode(status.Peer)
		if err != nil {
			return failure(ctx, err)
		}
		wanted.Only = append(wanted.Only, id)
	}
	if len(wanted.Only) == 0 {
		return command.Fail(command.Usage, errors.New("--only-mine: no peer is yours"), "start one with p2pboot, or list yours under the key mine of the configuration file")
	}
	return nil
}

func (s *session) run(ctx context.Context, req submit.Request, emit func(submit.Event) error) (job.Result, error) {
	if s.client != nil {
		return s.client.Run(ctx, req, emit)
	}
	return s.own.Submitter().Run(ctx, req, submit.Showing(emit)), nil
}

// explain adds what this peer knows about the cause to the result of a job that found too few peers.
func (s *session) explain(r *job.Result) {
	if r.Status != command.Unavailable || s.own == nil {
		return
	}
	if err := s.own.Refused(); err != nil {
		r.Message = fmt.Sprintf("%s; %v", r.Message, err)
		r.Hint = "run p2pboot network invite on the home that owns the network, and pass the invitation with --token FILE"
	} else if err := s.own.Unmet(); err != nil {
		r.Message = fmt.Sprintf("%s; %v", r.Message, err)
		r.Hint = "check the address given with --supernode, and that p2pboot runs there"
	} else if s.net == nil && !s.own.Connected() {
		r.Hint = fmt.Sprintf("no peer runs on the home %s, and none was found: start one with p2pboot, name one with --supernode, or try --local 4 on this machine only", s.home)
	}
}

// after calls f in its own goroutine after d, unless the session closes before.
func (s *session) after(d time.Duration, f func()) {
	s.timers.Go(func() {
		select {
		case <-time.After(d):
			f()
		case <-s.done:
		}
	})
}

// close leaves the network and ends the peers of --local.
func (s *session) close() {
	close(s.done)
	s.timers.Wait()
	if s.net != nil {
		s.net.Close()
	}
	if s.own != nil {
		s.own.Close() // goroutines that hang end with the process
	}
	if s.client != nil {
		s.client.Close()
	}
}
