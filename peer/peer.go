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
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/internal/dialrule"
	"github.com/p2pmpi/p2pmpi/peer/internal/journal"
	"github.com/p2pmpi/p2pmpi/peer/internal/membership"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/peer/internal/portmap"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Role is what a peer is for.
type Role int

// The roles.
const (
	Volunteer  Role = iota // donates slots, has a home and a control socket
	SubmitOnly             // runs its user's jobs elsewhere and is gone
	Introducer             // submit-only, and the supernode of peers that end with it
)

// A Halt says how a peer ends.
type Halt string

// The ways to end. In each, everything is given back before the peer is gone.
const (
	Orderly Halt = "orderly" // jobs are handed over within handOverTimeout, and what is left of them ends
	Drain   Halt = "drain"   // jobs are handed over, and those that cannot be are waited for
	Now     Halt = "now"     // what runs here ends at once, and its jobs notice
)

// handOverTimeout is how long jobs have to go on elsewhere when the owner wants the machine back in
// order: for another replica to take over, or one to be made.
const handOverTimeout = 10 * time.Second

// How long Close may take before what is left is abandoned to the end of the process.
const (
	orderlyTimeout = 15 * time.Second
	nowTimeout     = 2 * time.Second
)

// A Peer is a running peer. Its methods are safe for concurrent use.
type Peer struct {
	cfg     Config
	role    Role
	log     zerolog.Logger
	started time.Time
	home    home
	key     crypto.PrivKey

	gate    *membership.Gate
	token   string // file of this peer's, in a private network
	network string // what the network goes by among peers

	host      host.Host
	registry  *prometheus.Registry
	punches   *connection.Punches
	dials     *dialrule.Rule  // nil unless a volunteer
	ports     *portmap.Mapper // nil: none is mapped
	sightings sightings
	slots     *reservation.Service // nil unless a volunteer, as are launcher, control and history
	launcher  *launch.Service
	walls     launch.Walls
	discovery *discovery.Service
	files     *filetransfer.Service
	detector  *faultdetect.Service
	views     *viewgroup.Service
	submitter *job.Submitter
	control   *control
	history   *history
	journal   *journal.Journal // of jobs; nil unless a volunteer
	policy    policy.Policy
	speed     int // of one processor, in Mflop/s

	unmet error // see Unmet

	life  context.Context // ends when Close begins
	end   context.CancelCauseFunc
	parts []part // in the order of starting

	halted      chan struct{} // closed when the peer is to be closed
	draining    sync.WaitGroup
	paused      atomic.Value // string, see pausedBy
	unreadRules atomic.Value // []presence.Unread, see unread
	drained     atomic.Bool  // ended because nothing was left of any job
	closing     sync.Once
	closed      error

	mu       sync.Mutex
	asked    Halt     // the strongest halt asked for
	isHalted bool     // halted is closed
	failed   error    // see Failed
	outdated outdated // peers of another version

	oldTalk misconduct.Pace // of lines about them
}

// A part is something to close.
type part struct {
	name  string
	close func() error
}

// New starts a peer and returns when it can take jobs: the services run and,
// where there are supernodes, one has introduced it. Supernodes that do not
// answer are no error, since they are tried for ever and the network may heal;
// Unmet tells. The peer lives until Close; ctx only bounds the start.
//
// The error is a *HomeError, a *RunningError or a *CopyError where the owner has to act.
func New(ctx context.Context, cfg Config, role Role, log zerolog.Logger) (*Peer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Peer{
		cfg: cfg, role: role, log: log, started: time.Now(),
		registry: prometheus.NewRegistry(),
		punches:  connection.NewPunches(),
		halted:   make(chan struct{}),
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

// Unmet returns why no supernode had introduced the peer when New returned, or
// nil if one had, or none was needed.
func (p *Peer) Unmet() error { return p.unmet }

func (p *Peer) start() error {
	steps := []func() error{p.startHome, p.startMembership, p.startHost, p.startServices}
	if p.role == Volunteer {
		steps = append(steps, p.startHistory, p.startVolunteer, p.startPresence)
	}
	// Discovery announces the peer, so it comes when all else answers.
	for _, step := range append(steps, p.startDiscovery, p.startReunion, p.startControl) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// owns makes close run when the peer is closed, before that of earlier parts.
func (p *Peer) owns(name string, close func() error) {
	p.parts = append(p.parts, part{name, close})
}

// startHome opens and locks the home, or makes a temporary one in it.
func (p *Peer) startHome() (err error) {
	if p.role != Volunteer {
		dir, err := os.MkdirTemp(p.cfg.Home, "submit-")
		if err != nil {
			return fmt.Errorf("make a temporary home: %w", err)
		}
		p.owns("temporary home", func() error { return os.RemoveAll(dir) })
		p.home = home(dir)
		if p.key = p.cfg.Identity; p.key == nil {
			p.key, err = newIdentity()
		}
		return err
	}
	if p.home, err = openHome(p.cfg.Home); err != nil {
		return err
	}
	lock, err := lockHome(p.home)
	if err != nil {
		return err
	}
	p.owns("lock", lock.release)
	if p.key, err = loadIdentity(p.home.identity()); err != nil {
		return &HomeError{string(p.home), err}
	}
	id, err := p2ppeer.IDFromPrivateKey(p.key)
	if err != nil {
		return &HomeError{string(p.home), err}
	}
	return lock.describe(id.String())
}

// ID returns the peer's ID.
func (p *Peer) ID() p2ppeer.ID { return p.host.ID() }

// Addresses returns the multiaddrs under which others can reach the peer,
// complete with its ID, as --supernode takes them.
func (p *Peer) Addresses() []string {
	addrs, err := p2ppeer.AddrInfoToP2pAddrs(&p2ppeer.AddrInfo{ID: p.host.ID(), Addrs: p.host.Addrs()})
	if err != nil {
		return nil // an ID that is no ID; libp2p gave it to us
	}
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return out
}

// Submitter returns what runs this peer's own jobs.
func (p *Peer) Submitter() *job.Submitter { return p.submitter }

// Halt asks the peer to end. It returns at once; Halted tells when to Close. A
// stronger wish overtakes a weaker one: an impatient owner need not wait for a
// drain.
func (p *Peer) Halt(how Halt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Info().Str("how", string(how)).Msg("asked to halt")
	strength := map[Halt]int{Drain: 1, Orderly: 2, Now: 3}
	if strength[how] <= strength[p.asked] {
		return
	}
	p.asked = how
	switch {
	case p.launcher == nil: // no volunteer: there is nothing to wait for
		p.haltNow()
	case how == Drain:
		p.draining.Go(p.drain) // ends when the jobs have, or with the peer's life
	case how == Orderly && p.failed == nil:
		p.draining.Go(p.handOver) // ends within handOverTimeout, or with the peer's life
	default:
		p.haltNow()
	}
}

// haltNow has the peer be closed. Mu is held.
func (p *Peer) haltNow() {
	if !p.isHalted {
		p.isHalted = true
		close(p.halted)
	}
}

// Halted is closed when the peer is to be closed because it was asked to halt.
func (p *Peer) Halted() <-chan struct{} { return p.halted }

// Failed returns why the peer has to be closed although nobody has asked it to halt, or nil.
// It is then halted. The owner has to act on it, as on a *CopyError.
func (p *Peer) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Close ends the peer as the strongest Halt asked for says, or else in order,
// and returns when all is given back and every goroutine has ended, or a bound
// is over; then the error says what hung.
func (p *Peer) Close() error {
	p.mu.Lock()
	timeout := orderlyTimeout
	if p.asked == Now {
		timeout = nowTimeout
	}
	p.mu.Unlock()
	return p.close(timeout)
}

// errEnding is what people who have submitted a job here are told.
var errEnding = errors.New("the peer that it was handed to is ending")

func (p *Peer) close(timeout time.Duration) error {
	p.closing.Do(func() {
		p.end(errEnding)
		done := make(chan error, 1)
		at := make(chan string, len(p.parts))
		go func() { // ends when all parts have closed
			var errs []error
			for i := len(p.parts) - 1; i >= 0; i-- {
				at <- p.parts[i].name
				if err := p.parts[i].close(); err != nil {
					errs = append(errs, fmt.Errorf("close %s: %w", p.parts[i].name, err))
				}
			}
			done <- errors.Join(errs...)
		}()
		select {
		case p.closed = <-done:
		case <-time.After(timeout):
			var last string
			for len(at) > 0 {
				last = <-at
			}
			p.closed = fmt.Errorf("close %s: not done after %v", last, timeout)
		}
	})
	return p.closed
}
