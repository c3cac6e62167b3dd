package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/net/relay"
	"github.com/p2pmpi/p2pmpi/peer/net/stack"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// startMembership determines whether the network is private, and creates the gate that keeps out peers that
// are not members.
func (p *Peer) startMembership() error {
	id, err := p2ppeer.IDFromPrivateKey(p.key)
	if err != nil {
		return err
	}
	if warning := p.cfg.NetworkChoice().OpenWarning(); warning != "" && p.role == Volunteer {
		p.log.Warn().Msg(warning)
	}
	p.admission, err = networks.Enter(p.cfg.NetworkChoice(), id, p.homeKey, p.log)
	return err
}

// homeKey returns the key of the home that this peer belongs to, or nil if there is none. That key confirms
// the peer's membership to others.
func (p *Peer) homeKey() crypto.PrivKey {
	if p.role == Volunteer {
		return p.key // for additional hosts that libp2p creates
	}
	file := homedir.Dir(p.cfg.MemberOf).Identity()
	if _, err := os.Stat(file); p.cfg.MemberOf == "" || err != nil {
		return nil
	}
	key, err := homedir.LoadIdentity(file)
	if err != nil {
		p.log.Debug().Err(err).Msg("cannot confirm the membership of this peer: no key of its home")
		return nil
	}
	return key
}

// startHost starts the libp2p host and the services that watch its connections.
func (p *Peer) startHost() error {
	asked := p.cfg.Listen
	if p.role == Volunteer {
		p.cfg.Listen = node.RecallPorts(p.home.Ports(), asked)
	} else {
		// Fixed ports belong to the volunteer that may run on the same machine.
		p.cfg.Listen = node.AnyPort(p.cfg.Listen)
	}
	cfg := stack.Config{
		Key:          p.key,
		Listen:       p.cfg.Listen,
		Supernodes:   p.cfg.Supernodes,
		Admission:    p.admission,
		NAT:          p.cfg.NAT,
		Reachability: p.cfg.Reachability,
		FilterDials:  p.role == Volunteer,
		Channels:     launch.ChannelProtocol,
		Metrics:      p.registry,
		Log:          p.log,
		Owns:         p.owns,
	}
	if p.role != SubmitOnly && p.cfg.Relay && p.cfg.Reachability != node.Private {
		cfg.Relay = relay.Limits{Peers: p.cfg.RelayPeers, Bytes: p.cfg.RelayData << 20, Time: p.cfg.RelayTime}
	}
	var err error
	if p.net, err = stack.Start(p.life, cfg); err != nil {
		return err
	}
	if p.role == Volunteer {
		if err := node.KeepPorts(p.home.Ports(), asked, p.net.Host.Network().ListenAddresses()); err != nil {
			return &homedir.Error{Home: string(p.home), Err: err}
		}
	}
	return nil
}

func (p *Peer) startServices() error {
	store, err := filetransfer.OpenStore(p.home.Cache(), p.cfg.CacheLimit<<20)
	if err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	p.files = filetransfer.NewService(p.net.Host, store, p.log)
	p.owns("file transfer", p.files.Close)
	p.detector = faultdetect.NewService(p.net.Host, p.log)
	p.owns("fault detection", p.detector.Close)
	p.views = viewgroup.NewService(p.net.Host, p.log)
	p.owns("views", p.views.Close)
	return nil
}

// startDiscovery joins the network. A submit-only peer joins as a DHT client, so other peers do not depend
// on it.
func (p *Peer) startDiscovery() error {
	cfg := discovery.DefaultConfig()
	cfg.Network = p.admission.ID
	cfg.Supernodes = p.cfg.Supernodes
	cfg.MDNS = p.cfg.MDNS
	cfg.PeersFile = p.cfg.PeersFile
	if p.role == Volunteer {
		cfg.PeersFile = homedir.PeersOf(string(p.home), p.admission.ID)
	}
	if p.net.Dials != nil {
		cfg.Neighbour, cfg.MayDial = p.net.Dials.Neighbour, p.net.Dials.MayDial
	}
	cfg.DHTServer = p.role != SubmitOnly
	cfg.Log = p.log
	if p.role == Volunteer {
		cfg.Offer, cfg.Machine, cfg.Duplicate = p.offer, p.slots.Machine, p.duplicateFound
	}
	var err error
	if p.discovery, err = discovery.New(p.life, p.net.Host, cfg); err != nil {
		return err
	}
	p.owns("discovery", p.discovery.Close)
	return p.startSubmitter()
}

func (p *Peer) startSubmitter() error {
	mode, err := faultdetect.ParseMode(p.cfg.Detector)
	if err != nil {
		return err
	}
	jobs := p.cfg.Jobs
	if p.role == Volunteer {
		jobs = homedir.JobsOf(string(p.home))
	}
	var owner func(p2ppeer.ID) string // returns the signed owner of a peer, or nil in an open network
	if !p.admission.Gate.Open() {
		owner = p.admission.Gate.Person
	}
	p.submitter = submit.NewSubmitter(submit.Config{
		Host:      p.net.Host,
		Key:       p.key,
		Discovery: p.discovery,
		Files:     p.files,
		Detector:  p.detector,
		Views:     p.views,
		Period:    p.cfg.GossipPeriod,
		Hang:      p.cfg.ToleratedHang,
		Patient:   p.cfg.ToleratedHang == faultdetect.DefaultGroupHang, // true if the owner kept the default
		Mode:      mode,
		Log:       p.log,
		Jobs:      jobs,
		Resident:  p.role == Volunteer,
		Owner:     owner,
		Site:      p.cfg.Site,
		Outdated:  p.net.Watcher.Outdated,
	})
	return nil
}

// duplicateFound halts this peer because an older peer has the same identity.
func (p *Peer) duplicateFound(err *discovery.DuplicateError) {
	p.halting.fail(&CopyError{string(p.home), err})
	p.Halt(status.Orderly)
}

func (p *Peer) keepConnected() error {
	p.discovery.KeepPartners(func() map[p2ppeer.ID]time.Duration {
		all := p.submitter.Partners()
		if p.launcher != nil {
			for id, tolerates := range p.launcher.Partners() {
				all[id] = max(all[id], tolerates)
			}
		}
		return all
	}, func(id p2ppeer.ID) {
		if p.launcher != nil {
			p.launcher.Renew(id)
		}
	})
	return nil
}

// startControl opens the control socket and the status page.
func (p *Peer) startControl() error {
	if p.role != Volunteer {
		return nil
	}
	p.jobs = control.NewJobs(p.life, p.submitter)
	server, err := control.Serve(p.life, p.home.Socket(), p.handlers())
	if err != nil {
		return &homedir.Error{Home: string(p.home), Err: fmt.Errorf("open control socket: %w", err)}
	}
	p.owns("control socket", func() error {
		p.jobs.Refuse()
		ctx, cancel := context.WithTimeout(context.Background(), orderlyTimeout)
		defer cancel()
		p.jobs.Cancel(errEnding) // their contexts derive from the peer's life, which has ended
		err := server.Close(ctx)
		if !p.jobs.Await(ctx) {
			err = errors.Join(err, errors.New("jobs that were handed to this peer have not ended"))
		}
		return err
	})
	return p.startPage()
}

// handlers returns the handlers of all requests that the socket accepts, by pattern.
func (p *Peer) handlers() map[string]http.HandlerFunc {
	all := p.jobs.Handlers()
	maps.Copy(all, control.Requests(owned{p}))
	return all
}

// startPage serves the status page if the owner has configured it.
func (p *Peer) startPage() error {
	if p.cfg.HTTP == "" {
		return nil
	}
	page := control.StatusPage{Address: p.cfg.HTTP, Home: p.home, Status: p.Status, Metrics: p.registry, Log: p.log}
	server, err := page.Serve(p.life)
	if err != nil {
		return err
	}
	p.owns("status page", server.Close)
	return nil
}
