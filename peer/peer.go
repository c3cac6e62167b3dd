package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/net/stack"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
	"github.com/p2pmpi/p2pmpi/peer/owner/uptime"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Role is the part that a peer plays in a network.
type Role int

// The roles.
const (
	Volunteer  Role = iota // donates slots, has a home and a control socket
	SubmitOnly             // submits its user's jobs and then ends
	Introducer             // submit-only, and the supernode of temporary peers, which end when it ends
)

// handOverTimeout bounds an orderly handover of jobs: the time for another replica to take over, or for a
// new one to be created.
const handOverTimeout = 10 * time.Second

// Bounds on the duration of Close. After that Close leaves the remaining cleanup to the end of the process.
const (
	orderlyTimeout = 15 * time.Second
	nowTimeout     = 3 * time.Second
)

// A Peer is a running peer. Its methods are safe for concurrent use.
type Peer struct {
	cfg     Config
	role    Role
	log     zerolog.Logger
	started time.Time
	home    homedir.Dir
	key     crypto.PrivKey

	admission *networks.Admission

	net       *stack.Stack
	registry  *prometheus.Registry
	slots     *reservation.Service // nil unless the peer is a volunteer, as are launcher and history
	launcher  *launch.Service
	discovery *discovery.Service
	files     *filetransfer.Service
	detector  *faultdetect.Service
	views     *viewgroup.Service
	submitter *submit.Submitter
	jobs      *control.Jobs // nil unless a volunteer
	history   *uptime.History
	terms     *terms
	speed     int // speed of one processor, in Mflop/s

	unmet error // see Unmet

	life  context.Context // ends when Close begins
	end   context.CancelCauseFunc
	parts parts

	halting  *halting
	draining sync.WaitGroup
	drained  atomic.Bool // true if the peer ended because no job was left
}

// New starts a peer and returns when the peer can take jobs: its services run and, if supernodes are configured,
// one of them has introduced the peer. Unresponsive supernodes are not an error, because the peer keeps trying
// to reach them; Unmet reports this case. The peer lives until Close; ctx bounds only the start.
//
// The error is a *homedir.Error, a *homedir.RunningError or a *CopyError if the owner has to act.
func New(ctx context.Context, cfg Config, role Role, log zerolog.Logger) (*Peer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Peer{
		cfg: cfg, role: role, log: log, started: time.Now(),
		registry: prometheus.NewRegistry(),
		halting:  newHalting(),
		terms:    &terms{suspend: suspend.New(log)},
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	p.owns("drain", func() error { p.draining.Wait(); return nil })
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.close(orderlyTimeout))
	}
	p.unmet = p.discovery.Introduced(ctx)
	if err := cmp.Or(ctx.Err(), p.Failed()); err != nil {
		return nil, errors.Join(err, p.close(orderlyTimeout))
	}
	return p, nil
}

// Unmet returns the reason why no supernode had introduced the peer when New returned. It returns nil if a
// supernode had introduced the peer, or if none is configured.
func (p *Peer) Unmet() error { return p.unmet }

func (p *Peer) start() error {
	steps := []func() error{p.startHome, p.startMembership, p.startHost, p.startServices}
	if p.role == Volunteer {
		steps = append(steps, p.startHistory, p.startVolunteer, p.startSuspending)
	}
	// Discovery announces the peer, so it starts after the services that must answer.
	for _, step := range append(steps, p.startDiscovery, p.keepConnected, p.startControl) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// owns registers a function that runs when the peer closes, before those registered earlier.
func (p *Peer) owns(name string, close func() error) { p.parts.add(name, close) }

// startHome opens and locks the home. For a peer that is not a volunteer, it creates a temporary home in
// Config.Home instead, which is removed when the peer closes.
func (p *Peer) startHome() (err error) {
	if p.role != Volunteer {
		dir, err := os.MkdirTemp(p.cfg.Home, "submit-")
		if err != nil {
			return fmt.Errorf("create a temporary home: %w", err)
		}
		p.owns("temporary home", func() error { return os.RemoveAll(dir) })
		p.home = homedir.Dir(dir)
		if p.key = p.cfg.Identity; p.key == nil {
			p.key, err = homedir.NewIdentity()
		}
		return err
	}
	if p.home, err = homedir.Open(p.cfg.Home); err != nil {
		return err
	}
	lock, err := p.home.Lock()
	if err != nil {
		return err
	}
	p.owns("lock", lock.Release)
	if p.key, err = homedir.LoadIdentity(p.home.Identity()); err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	id, err := p2ppeer.IDFromPrivateKey(p.key)
	if err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	return lock.Describe(id.String())
}

// ID returns the peer's ID.
func (p *Peer) ID() p2ppeer.ID { return p.net.Host.ID() }

// AddrInfo returns the peer's ID and the addresses under which other peers can reach it.
func (p *Peer) AddrInfo() p2ppeer.AddrInfo { return *host.InfoFromHost(p.net.Host) }

// Addresses returns the addresses of AddrInfo as multiaddrs. They end with the peer's ID, as --supernode expects
// them.
func (p *Peer) Addresses() []string {
	info := p.AddrInfo()
	addrs, err := p2ppeer.AddrInfoToP2pAddrs(&info)
	if err != nil {
		return nil // invalid ID; cannot happen, since libp2p created it
	}
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// Submitter returns the submitter that runs this peer's own jobs.
func (p *Peer) Submitter() *submit.Submitter { return p.submitter }

// Refused returns the reason why another peer has refused this one: one of the two is not a member of the
// other's private network. Refused returns nil if no peer has refused this one.
func (p *Peer) Refused() error { return p.admission.Refused() }

// Halt asks the peer to end and returns at once. Halted is closed when the caller has to call Close. A
// stronger mode overrides a weaker one, so an impatient owner need not wait for a drain.
func (p *Peer) Halt(how status.Halt) {
	p.log.Info().Str("how", string(how)).Msg("asked to halt")
	if !p.halting.ask(how) {
		return
	}
	switch {
	case p.launcher == nil: // not a volunteer: hosts no jobs
		p.halting.now()
	case how == status.Drain:
		p.draining.Go(p.drain) // ends when the jobs end, or with the peer's life
	case how == status.Orderly && p.Failed() == nil:
		p.draining.Go(p.handOver) // ends within handOverTimeout and tellTimeout, or with the peer's life
	default:
		p.halting.now()
	}
}

// Halted returns a channel that is closed when the peer has to be closed, because it was asked to halt or
// has failed.
func (p *Peer) Halted() <-chan struct{} { return p.halting.halted }

// Failed returns the reason why the peer has to be closed although the owner did not ask for it, such as a
// *CopyError, or nil. The peer is halted then, and the owner has to act.
func (p *Peer) Failed() error { return p.halting.failure() }

// Close ends the peer and returns when all resources are released and every goroutine has ended. It takes
// nowTimeout at most if Halt was called with Now, otherwise orderlyTimeout. After that time it returns an
// error that names the part that has not closed.
func (p *Peer) Close() error {
	if p.halting.strongest() == status.Now {
		return p.close(nowTimeout)
	}
	return p.close(orderlyTimeout)
}

// errEnding is the reason given to users whose jobs were submitted through this peer.
var errEnding = errors.New("the peer that the job was handed to is ending")

func (p *Peer) close(timeout time.Duration) error {
	p.end(errEnding)
	return p.parts.close(timeout)
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
		p.Halt(status.Orderly)
	}
}

// tellTimeout bounds the time for submitters to learn why their jobs end and to release them.
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
