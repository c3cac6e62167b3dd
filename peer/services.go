package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
	"github.com/p2pmpi/p2pmpi/peer/net/node"
	"github.com/p2pmpi/p2pmpi/peer/net/portmap"
	"github.com/p2pmpi/p2pmpi/peer/net/punch"
	"github.com/p2pmpi/p2pmpi/peer/net/relay"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// startHost starts the libp2p host and the services that watch its connections.
func (p *Peer) startHost() error {
	asked := p.cfg.Listen
	if p.role == Volunteer {
		p.cfg.Listen = node.RecallPorts(p.home.ports(), asked)
	} else {
		// Fixed ports belong to the volunteer that may run on the same machine.
		p.cfg.Listen = node.AnyPort(p.cfg.Listen)
	}
	if err := p.startDialFilter(); err != nil {
		return err
	}
	puncher := punch.New(p.cfg.Supernodes, p.registry, p.punches, p.log)
	if p.cfg.mapsPorts() {
		p.ports = portmap.New(p.log)
		p.owns("port mapping", p.ports.Close)
	}
	h, err := node.New(node.Config{
		Key: p.key, Listen: p.cfg.Listen, NAT: p.cfg.NAT, Reachability: p.cfg.Reachability.stated(),
		Gate: p.gate, Dials: p.dials, Puncher: puncher, Mapper: p.ports, Channels: launch.ChannelProtocol,
	}, p.registry, p.log)
	if err != nil {
		return err
	}
	if p.role == Volunteer {
		if err := node.KeepPorts(p.home.ports(), asked, h.Network().ListenAddresses()); err != nil {
			return errors.Join(&HomeError{string(p.home), err}, h.Close())
		}
	}
	if p.dials != nil {
		h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) { p.dials.Met(c) }})
	}
	wrapped := loopback.Wrap(h) // allows a submitter to use its own slots
	p.host = wrapped
	p.owns("host", wrapped.Close)
	p.owns("membership", membership.New(h, p.gate, func() (*membership.Invitation, error) { return readInvitation(p.token) }).Close)
	if p.cfg.NAT {
		if err := puncher.Start(h); err != nil {
			return fmt.Errorf("start hole punching: %w", err)
		}
		p.owns("hole punching", puncher.Close)
	}
	if p.watcher, err = node.Watch(p.host, p.log); err != nil {
		return err
	}
	p.owns("version check", p.watcher.Close)
	return p.startRelays(h)
}

// startDialFilter installs the dial filter of a volunteer, which hosts the jobs of other users.
func (p *Peer) startDialFilter() error {
	if p.role != Volunteer {
		return nil
	}
	p.dials = dialfilter.New()
	for _, info := range p.cfg.Supernodes {
		p.dials.Name(info)
	}
	return nil
}

// mapsPorts reports whether the peer asks a router to map ports. It does not if the owner has stated the
// reachability.
func (c Config) mapsPorts() bool { return c.NAT && c.Reachability == Auto }

// reservedTimeout bounds the time that a private peer waits at startup for a supernode to relay for it.
const reservedTimeout = 5 * time.Second

// startRelays starts both sides of relaying: relays for this peer, and this peer as a relay. The peer asks
// supernodes first, since it knows them before any other peer can reach it.
func (p *Peer) startRelays(h host.Host) error {
	if !p.cfg.NAT {
		return nil
	}
	cfg := relay.Config{Network: p.network, Public: p.cfg.Reachability == Public, Log: p.log}
	if p.role != SubmitOnly && p.cfg.Relay && p.cfg.Reachability != Private {
		cfg.Limits = relay.Limits{Peers: p.cfg.RelayPeers, Bytes: p.cfg.RelayData << 20, Time: p.cfg.RelayTime}
	}
	if !cfg.Public {
		cfg.Relays = p.cfg.Supernodes
	}
	relays, err := relay.New(h, cfg)
	if err != nil {
		return fmt.Errorf("start relaying: %w", err)
	}
	p.owns("relays", relays.Close)
	if p.cfg.Reachability == Private && len(cfg.Relays) > 0 {
		ctx, cancel := context.WithTimeout(p.life, reservedTimeout)
		defer cancel()
		if err := relays.Reserved(ctx); err != nil {
			p.log.Warn().Msg("no supernode relays for this peer yet: others cannot reach it")
		}
	}
	return nil
}

// startServices starts the services that every peer needs to submit jobs.
func (p *Peer) startServices() error {
	store, err := filetransfer.OpenStore(p.home.cache(), p.cfg.CacheLimit<<20)
	if err != nil {
		return &HomeError{string(p.home), err}
	}
	p.files = filetransfer.NewService(p.host, store, p.log)
	p.owns("file transfer", p.files.Close)
	p.detector = faultdetect.NewService(p.host, p.log)
	p.owns("fault detection", p.detector.Close)
	p.views = viewgroup.NewService(p.host, p.log)
	p.owns("views", p.views.Close)
	return nil
}

// startVolunteer starts the services that donate slots.
func (p *Peer) startVolunteer() error {
	var err error
	if p.policy, err = p.cfg.policy(p.ID(), !p.gate.Open(), machineAt(string(p.home))); err != nil {
		return err
	}
	p.logPolicy()
	if err := p.startJournal(); err != nil {
		return err
	}
	p.examineSandbox()
	slots := reservation.Limits{Slots: p.cfg.Slots, MaxJobs: p.cfg.MaxJobs, Judge: p.judge}
	if p.speed, err = machine.Speed(p.home.speed()); err != nil {
		return &HomeError{string(p.home), err}
	}
	channels, err := proclink.ParseKinds(p.cfg.Channels)
	if err != nil {
		return fmt.Errorf("channels: %w", err)
	}
	grant, err := p.cfg.grant(string(p.home), p.cfg.Slots)
	if err != nil {
		return err
	}
	p.slots = reservation.NewService(p.host, reservation.Config{Limits: slots, Log: p.log, Machine: machine.Identity(p.cfg.Machine)})
	p.owns("reservation", p.slots.Close)
	stop := p.files.Tell(p.policy.Admits)
	p.owns("answers about cached files", func() error { stop(); return nil })
	p.launcher, err = launch.NewService(p.host, launch.Config{
		Home:         string(p.home),
		Reservations: p.slots,
		Files:        p.files,
		Detector:     p.detector,
		Views:        p.views,
		DataListen:   p.cfg.dataListen(),
		Channels:     channels,
		Decide:       p.decide,
		Sandbox:      p.walls,
		Engine:       p.chooseEngine(),
		Readable:     p.cfg.Readable,
		Journal:      p.journal,
		Grant:        grant,
		Niceness:     p.cfg.Niceness,
		Dials:        p.dials,
		Punches:      p.punches,
		Mapped:       p.ports.MappedTCP,
		Log:          p.log,
	})
	if err != nil {
		return fmt.Errorf("start the launcher: %w", err)
	}
	p.owns("launcher", p.launcher.Close)
	p.logUnheld()
	return nil
}

// dataListen returns the address for direct connections in the launcher's form; "" means none.
func (c Config) dataListen() string {
	switch c.DataListen {
	case "none":
		return ""
	case "":
	default:
		return c.DataListen
	}
	address := ""
	for _, a := range c.Listen {
		ip, err := manet.ToIP(a)
		switch {
		case err != nil:
		case ip.IsUnspecified():
			return ":0"
		case address == "":
			address = net.JoinHostPort(ip.String(), "0")
		}
	}
	return address
}

// grant returns the limits of jobs on this machine, for the given number of slots. home is the folder that
// holds the scratch folders.
func (c Config) grant(home string, slots int) (limits.Grant, error) {
	return limits.Default(machineAt(home), slots).With(c.SlotLimits, c.JobLimits)
}

// machineAt returns the machine's resources that limits apply to; the disk is that of home.
func machineAt(home string) limits.Machine {
	m := limits.Machine{Disk: machine.DiskFree(home)}
	if memory := machine.Memory(); memory != 0 && memory != machine.Unlimited {
		m.Memory = int64(memory)
	}
	return m
}

// startDiscovery joins the network and creates the submitter. A submit-only peer joins as a DHT client, so
// other peers do not depend on it.
func (p *Peer) startDiscovery() error {
	cfg := discovery.DefaultConfig()
	cfg.Network = p.network
	cfg.Supernodes = p.cfg.Supernodes
	cfg.MDNS = p.cfg.MDNS
	cfg.PeersFile = p.cfg.PeersFile
	if p.role == Volunteer {
		cfg.PeersFile = PeersOf(string(p.home), p.network)
	}
	if p.dials != nil {
		cfg.Neighbour, cfg.MayDial = p.dials.Neighbour, p.dials.MayDial
	}
	cfg.DHTServer = p.role != SubmitOnly
	cfg.Log = p.log
	if p.role == Volunteer {
		cfg.Offer, cfg.Machine, cfg.Duplicate = p.offer, p.slots.Machine, p.twinFound
	}
	var err error
	if p.discovery, err = discovery.New(p.life, p.host, cfg); err != nil {
		return err
	}
	p.owns("discovery", p.discovery.Close)
	mode, err := faultdetect.ParseMode(p.cfg.Detector)
	if err != nil {
		return err
	}
	jobs := p.cfg.Jobs
	if p.role == Volunteer {
		jobs = JobsOf(string(p.home))
	}
	var owner func(p2ppeer.ID) string // returns the signed owner of a peer; nil in an open network
	if !p.gate.Open() {
		owner = p.gate.Person
	}
	p.submitter = submit.NewSubmitter(submit.Config{
		Host:      p.host,
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
		Outdated:  p.watcher.Outdated,
	})
	return nil
}

// twinFound halts this peer because an older peer has the same identity.
func (p *Peer) twinFound(err *discovery.DuplicateError) {
	p.halting.fail(&CopyError{string(p.home), err})
	p.Halt(Orderly)
}

// keepPartners keeps this peer connected to the other peers of its jobs.
func (p *Peer) keepPartners() error {
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

// offer returns the peer's current offer.
func (p *Peer) offer() discovery.Offer {
	s := p.slots.Snapshot()
	o := discovery.Offer{
		SlotsTotal:  s.Total,
		SlotsFree:   s.Free,
		MaxJobs:     p.cfg.MaxJobs,
		Jobs:        len(s.Jobs),
		MemoryBytes: machine.TotalMemory(),
		Kinds:       p.announced(),
		Speed:       p.speed,
		Load:        machine.Load(),
		Site:        p.cfg.Site,
		Owner:       p.cfg.Owner,
		History:     p.history.At(time.Now()),
	}
	if s.Draining || p.pausedBy() != "" || p.fullDisk() {
		o.SlotsFree = 0
	}
	return o
}

// resize changes the number of slots until the peer ends. If jobs use more slots than remain, the launcher
// hands them over where possible; the jobs keep their slots until then.
func (p *Peer) resize(slots int) {
	p.log.Info().Int("slots", slots).Msg("slots changed")
	p.updateGrant(slots)
	p.slots.Resize(slots)
	p.launcher.Trim(slots)
}

// updateGrant divides the machine among more slots than configured, for future jobs. With fewer slots the
// limits stay the same, because earlier jobs keep theirs.
func (p *Peer) updateGrant(slots int) {
	grant, err := p.cfg.grant(string(p.home), max(slots, p.cfg.Slots))
	if err != nil { // cannot happen: the limits were parsed at startup
		p.log.Error().Err(err).Msg("limits unchanged")
		return
	}
	p.launcher.SetGrant(grant)
}

// drain hands over the jobs that can run elsewhere and waits until no job is left. Then it halts the peer.
func (p *Peer) drain() {
	p.jobs.Refuse()
	p.slots.Drain()
	ctx, cancel := context.WithCancel(p.life)
	p.draining.Go(func() { p.launcher.HandOver(ctx) }) // ends with ctx
	defer cancel()
	if p.jobs.Await(p.life) && p.awaitSlots(p.life) {
		p.drained.Store(true)
		p.Halt(Orderly)
	}
}

// tellTimeout bounds the time in which submitters learn why their jobs end, and release them.
const tellTimeout = 2 * time.Second

// handOver gives the jobs here a limited time to continue elsewhere, and ends the remaining ones. Then it
// lets the peer be closed.
func (p *Peer) handOver() {
	p.slots.Drain()
	ctx, cancel := context.WithTimeout(p.life, handOverTimeout)
	defer cancel()
	p.launcher.HandOver(ctx)
	told, cancelTold := context.WithTimeout(p.life, tellTimeout)
	defer cancelTold()
	p.launcher.EndAll(told)
	p.halting.now()
}

// awaitSlots returns true when all slots are free, or false when ctx ends.
func (p *Peer) awaitSlots(ctx context.Context) bool {
	for {
		if s := p.slots.Snapshot(); s.Held+s.Confirmed+s.Running == 0 {
			return true
		}
		select {
		case <-p.slots.Changed():
		case <-ctx.Done():
			return false
		}
	}
}
