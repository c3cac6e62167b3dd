package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/internal/dialrule"
	"github.com/p2pmpi/p2pmpi/peer/internal/journal"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/entrance"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// The protocols that a Service speaks.
const (
	ControlProtocol protocol.ID = "/p2pmpi/job/1.0.0"
	ChannelProtocol protocol.ID = "/p2pmpi/channel/1.0.0"
)

// Supervise does the work of a process's supervisor, or of a module's runner, if this
// process was started as one by a Service; the caller then exits with the status. The main function
// of every command that may run a Service, and TestMain of every test that
// does, calls it first thing.
func Supervise() (status int, isSupervisor bool) {
	if status, ok := wasm.Main(wasm.Wazero{}); ok {
		return status, true
	}
	return supervisor.Main()
}

// Config is what a Service needs. All fields up to Views are required.
type Config struct {
	Home         string // the peer's home; processes run below <Home>/scratch
	Reservations *reservation.Service
	Files        *filetransfer.Service
	Detector     *faultdetect.Service
	Views        *viewgroup.Service
	// DataListen is the host:port where peers connect directly for their
	// processes; port 0 takes a free one. Empty: nowhere.
	DataListen string
	// Mapped returns where a router leads others to a TCP port of this machine, and has it
	// do so from then on; nil: there is none.
	Mapped func(port uint16) (netip.AddrPort, bool)
	// Channels are the kinds of channels that the owner allows; nil is all.
	Channels []proclink.Kind
	// Decide is the owner's policy: what a submitter's job may run here of the kinds that it
	// has for this machine; nil: native programs of everybody.
	Decide func(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision
	// Walls are those that ExamineWalls has found; all of them are built around each program.
	Walls Walls
	// Engine runs modules; the zero value is BuiltIn.
	Engine Engine
	// Readable are absolute paths of files and folders that programs may read, beside what
	// belongs to the system.
	Readable []string
	// Journal keeps who ran what; nil: nobody asks.
	Journal *journal.Journal
	// Grant is what a job may have here. None of it is no limit.
	Grant limits.Grant
	// Niceness is that of programs, 0 to 19.
	Niceness int
	// Dials says where the peer connects that others name; nil: all are met on this machine.
	Dials *dialrule.Rule
	// Punches says why peers are connected as they are; nil: that is not known.
	Punches *connection.Punches
	Log     zerolog.Logger
}

// A Service hosts this peer's parts of jobs.
type Service struct {
	host    host.Host
	config  Config
	scratch string
	retains bool // its file system: what files no longer hold
	groups  *cgroup.Tree
	session *supervisor.Session // of programs; nil: this peer's
	modules *wasm.Store

	ctx      context.Context // of everything; ends with Close
	cancel   context.CancelFunc
	serving  sync.WaitGroup    // streams being handled, hosted jobs among them
	pending  *misconduct.Quota // of control streams that have said nothing yet
	expected *misconduct.Quota // of those whose submitters have slots here

	conduct  *misconduct.Log
	told     misconduct.Pace    // of lines about the jobs of each submitter
	returned misconduct.Pace    // of lines about their coming back
	entrance *entrance.Entrance // nil: none

	protecting sync.Mutex // what jobs say of peers to the connection manager and the address book

	mu        sync.Mutex
	closed    bool
	obstacles map[p2ppeer.ID]time.Time // until when they are not connected to directly
	jobs      map[string]*job
	paused    Pause
	kept      map[*job]int64 // bytes of files of jobs that have given their slots back
	gone      chan struct{}  // closed and replaced whenever a job has gone
	idleTimer *time.Timer    // see giveMemoryBack
}

// scratchFolder is the folder in a home in which programs run.
const scratchFolder = "scratch"

// maxPending bounds the control streams that have opened and said nothing yet, and
// maxPendingEach those of one submitter. Those of submitters who have slots here, which are
// few, are counted apart: identities are free, and others would take all the places.
const (
	maxPending     = 32
	maxPendingEach = 8
)

// maxTold bounds the jobs of a submitter that the log tells of, and how often it comes back to
// one, in a minute: what comes faster is no work, and the log is not to fill the disk.
const maxTold = 60

// NewService has removed what an earlier peer that was killed has left in
// <Home>/scratch, as far as that can be, without waiting for it, and begins to host jobs. Only one Service may use a home.
func NewService(h host.Host, c Config) (*Service, error) {
	home, err := filepath.Abs(c.Home)
	if err != nil {
		return nil, fmt.Errorf("scratch folder below %q: %w", c.Home, err)
	}
	s := &Service{
		host: h, config: c, scratch: filepath.Join(home, scratchFolder),
		conduct:   misconduct.New(c.Log),
		told:      misconduct.Pace{Times: maxTold},
		returned:  misconduct.Pace{Times: maxTold},
		pending:   misconduct.NewQuota(maxPending, maxPendingEach),
		expected:  misconduct.NewQuota(math.MaxInt, maxPendingEach),
		jobs:      make(map[string]*job),
		kept:      make(map[*job]int64),
		obstacles: make(map[p2ppeer.ID]time.Time),
		gone:      make(chan struct{}),
	}
	if c.Dials == nil {
		s.config.Dials = dialrule.New()
	}
	s.retains = scratch.Retains(home)
	s.idleTimer = newIdleTimer(s)
	s.groups = cgroup.Open(home)
	if s.groups.Missing(cgroup.CPU) != nil {
		s.session = supervisor.NewSession()
	}
	supervisor.KillStale(s.scratch)
	if err := scratch.SetAside(s.scratch); err != nil {
		c.Log.Error().Err(err).Msg("scratch folders of an earlier peer stay")
	}
	if c.Decide == nil {
		s.config.Decide = func(p2ppeer.ID, []policy.Kind) policy.Decision {
			return policy.Decision{Class: policy.Everyone, Kind: policy.Native}
		}
	}
	if c.Engine == (Engine{}) {
		s.config.Engine = BuiltIn()
	}
	forgetEngine(home, s.config.Engine)
	s.modules = wasm.NewStore(filepath.Join(home, "modules"), s.config.Engine.Name)
	if c.Channels == nil {
		s.config.Channels = proclink.Kinds
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if c.DataListen != "" {
		if s.entrance, err = entrance.Listen(s.ctx, c.DataListen, c.Mapped); err != nil {
			s.cancel()
			return nil, err
		}
	}
	s.serving.Go(s.removeStale) // ends with ctx
	h.SetStreamHandler(ControlProtocol, s.handle(s.serveControl))
	h.SetStreamHandler(ChannelProtocol, s.handle(s.serveChannel))
	return s, nil
}

// removeStale removes what an earlier peer has left. There may be much.
func (s *Service) removeStale() {
	if err := scratch.RemoveStale(s.ctx, s.scratch); err != nil && s.ctx.Err() == nil {
		s.config.Log.Error().Err(err).Msg("scratch folders of an earlier peer stay")
	}
}

// handle runs serve for each incoming stream until Close, which resets them.
func (s *Service) handle(serve network.StreamHandler) network.StreamHandler {
	return func(stream network.Stream) {
		if !s.enter() {
			stream.Reset()
			return
		}
		defer s.serving.Done()
		serve(stream)
	}
}

// enter counts the caller as serving unless the service is closed.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.serving.Add(1)
	return true
}

// Close ends every job here, kills its processes and returns when nothing of
// them is left.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(ControlProtocol)
	s.host.RemoveStreamHandler(ChannelProtocol)
	s.mu.Lock()
	s.closed = true
	s.idleTimer.Stop()
	s.mu.Unlock()
	s.cancel()
	s.serving.Wait()
	s.session.Close()
	if s.entrance != nil {
		s.entrance.Close()
	}
	return nil
}

// claim makes j the one job of its ID. An earlier attempt of the same submitter that has not
// begun is ended, and waited for: the submitter has given it up, and may not have been able to
// say so.
func (s *Service) claim(j *job) error {
	ctx, cancel := context.WithTimeout(s.ctx, claimTimeout)
	defer cancel()
	for {
		s.mu.Lock()
		before, taken := s.jobs[j.spec.ID]
		gone := s.gone
		if !taken {
			s.jobs[j.spec.ID] = j
		}
		s.mu.Unlock()
		switch {
		case !taken:
			return nil
		case before.submitter != j.submitter:
			return fmt.Errorf("job %s is here already, of another submitter", j.spec.ID)
		}
		before.do(before.giveWay)
		select {
		case <-gone:
		case <-ctx.Done():
			return fmt.Errorf("job %s is here already", j.spec.ID)
		}
	}
}

// claimTimeout is how long a job's earlier attempt may take to end.
const claimTimeout = 5 * time.Second

// forget says that nothing of j is left, and returns how many other jobs there are.
func (s *Service) forget(j *job) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.spec.ID)
	delete(s.kept, j)
	close(s.gone)
	s.gone = make(chan struct{})
	return len(s.jobs)
}

func (s *Service) lookup(id string) (*job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.jobs[id]
	return j, ok
}

// A State says how far a hosted job is. The package comment tells what each
// means.
type State string

// The states of a hosted job, in order.
const (
	Staging  State = "staging"
	Staged   State = "staged"
	Starting State = "starting"
	Running  State = "running"
	Ending   State = "ending"
)

// A JobStatus tells the owner what runs here, and for whom (O3).
type JobStatus struct {
	Job       string         `json:"job"`
	Submitter p2ppeer.ID     `json:"submitter"`
	Name      string         `json:"name"`   // of the program
	Digest    string         `json:"digest"` // of the program
	Kind      policy.Kind    `json:"kind"`   // of the program
	Class     policy.Class   `json:"class"`  // of the submitter
	Processes []view.Process `json:"processes"`
	Since     time.Time      `json:"since"`
	State     State          `json:"state"`
	Paused    time.Time      `json:"paused,omitzero"` // since when its processes stand still, see Pause
	Movable   bool           `json:"movable"`         // it may go on without this peer
	Use       Use            `json:"use"`             // now, while it runs
}

// A Channel is how messages go from a process here to one of another peer.
type Channel struct {
	From, To view.Process
	Peer     p2ppeer.ID
	Kind     proclink.Kind
	Way      connection.Way
	Relay    p2ppeer.ID // that it goes through, if any
	Why      string     // no better kind, and no better way
}

// Channels returns those that processes here have opened to other peers, by job.
func (s *Service) Channels() map[string][]Channel {
	s.mu.Lock()
	jobs := slices.Collect(maps.Values(s.jobs))
	s.mu.Unlock()
	out := make(map[string][]Channel)
	for _, j := range jobs {
		if opened, ok := query(j, j.opened); ok {
			out[j.spec.ID] = opened
		}
	}
	return out
}

// opened returns the channels that processes here have opened to other peers.
func (j *job) opened() (out []Channel) {
	for id, c := range j.channels {
		if c.way.kind != "" {
			out = append(out, Channel{
				From: id.from, To: id.to, Peer: c.peer,
				Kind: c.way.kind, Way: c.way.how, Relay: c.way.relay, Why: c.way.why,
			})
		}
	}
	slices.SortFunc(out, func(a, b Channel) int {
		return cmp.Or(
			cmp.Compare(a.From.Rank, b.From.Rank), cmp.Compare(a.From.Replica, b.From.Replica),
			cmp.Compare(a.To.Rank, b.To.Rank), cmp.Compare(a.To.Replica, b.To.Replica))
	})
	return out
}

// Jobs returns the jobs that this peer hosts, oldest first.
func (s *Service) Jobs() []JobStatus {
	s.mu.Lock()
	var jobs []JobStatus
	var hosted []*job
	for _, j := range s.jobs {
		hosted = append(hosted, j)
		var stands time.Time
		if j.state == Running && j.stands.Load() {
			stands = j.pausedAt
		}
		jobs = append(jobs, JobStatus{
			Job: j.spec.ID, Paused: stands, Submitter: j.submitter, Name: j.spec.Name, Digest: j.program.Digest,
			Kind: j.decision.Kind, Class: j.decision.Class,
			Processes: slices.Clone(j.order), Since: j.since, State: j.state, Movable: s.movable(j),
		})
	}
	s.mu.Unlock()
	for i, u := range uses(hosted) {
		jobs[i].Use = u
	}
	slices.SortFunc(jobs, func(a, b JobStatus) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job))
	})
	return jobs
}
