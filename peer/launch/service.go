package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"runtime"
	"runtime/debug"
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
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// The protocols that a Service implements.
const (
	ControlProtocol protocol.ID = "/p2pmpi/job/1.0.0"
	ChannelProtocol             = switchboard.ChannelProtocol
)

// Supervise runs this process as a process supervisor or as a module runner, if a Service started it as
// one. The caller must then exit with the returned status. The main function of every command that may run
// a Service, and TestMain of every test that does, call Supervise first.
func Supervise() (status int, isSupervisor bool) {
	if status, ok := wasm.Main(wasm.Wazero{}); ok {
		return status, true
	}
	return supervisor.Main()
}

// Config configures a Service. All fields up to Views are required.
type Config struct {
	Home         string // the peer's home; processes run below <Home>/scratch
	Reservations *reservation.Service
	Files        *filetransfer.Service
	Detector     *faultdetect.Service
	Views        *viewgroup.Service
	// DataListen is the host:port that accepts direct connections of other peers for their processes. Port
	// 0 selects a free port. If it is empty, this peer accepts no direct connections.
	DataListen string
	// Mapped asks the router to forward a TCP port to this machine, and returns the external address; nil
	// if port mapping is unavailable.
	Mapped func(port uint16) (netip.AddrPort, bool)
	// Channels are the kinds of channels that the owner allows; nil allows all.
	Channels []proclink.Kind
	// Decide is the owner's policy. It decides which of the kinds of programs that a submitter's job
	// provides for this machine may run here. If it is nil, native programs of every submitter may run.
	Decide func(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision
	// Sandbox holds the mechanisms that ExamineSandbox found to work. They all apply to every program.
	Sandbox Sandbox
	// Engine runs modules; the zero value is BuiltIn.
	Engine Engine
	// Readable are absolute paths of files and folders that programs may read in addition to the system's
	// own files.
	Readable []string
	// Journal records the jobs that ran here; nil records nothing.
	Journal *journal.Journal
	// Grant holds the resource limits of a job on this peer; zero values mean no limit.
	Grant limits.Grant
	// Niceness is the nice value of programs, 0 to 19.
	Niceness int
	// Dials decides which addresses this peer connects to when other peers name them. If it is nil, the
	// service assumes that all peers run on this machine.
	Dials *dialfilter.Filter
	// Punches explains how the connections to other peers came about; nil if that is not recorded.
	Punches *connection.Punches
	Log     zerolog.Logger
}

// A Service hosts this peer's parts of jobs.
type Service struct {
	host    host.Host
	config  Config
	scratch string
	retains bool // the home's file system may keep the space of deleted parts of files allocated
	groups  *cgroup.Tree
	session *supervisor.Session // of programs; nil: they share this peer's session
	modules *wasm.Store

	ctx      context.Context // parent of all contexts; cancelled by Close
	cancel   context.CancelFunc
	serving  sync.WaitGroup    // streams being handled, hosted jobs among them
	pending  *misconduct.Quota // control streams that have not sent a message yet
	expected *misconduct.Quota // such streams of submitters that hold slots here

	conduct       *misconduct.Log
	logPace       misconduct.Pace // limits log lines about the jobs of each submitter
	reconnectPace misconduct.Pace // limits log lines about submitters that reconnect
	switchboard   *switchboard.Service

	protecting sync.Mutex // guards what jobs set in the connection manager and the address book

	mu        sync.Mutex
	closed    bool
	jobs      map[string]*job
	paused    Pause
	kept      map[*job]int64 // bytes of files of jobs that have released their slots
	gone      chan struct{}  // closed and replaced whenever a job has been removed
	idleTimer *time.Timer    // see freeUnusedMemory
}

// scratchFolder is the folder below a home in which programs run.
const scratchFolder = "scratch"

// maxPending bounds the open control streams that have not sent a message yet, and maxPendingEach bounds
// those of one submitter. Streams of submitters that hold slots here count separately: identities are free,
// so strangers could otherwise occupy every place.
const (
	maxPending     = 32
	maxPendingEach = 8
)

// maxLogged bounds, per submitter and minute, the jobs and the reconnects that the log mentions. More than
// that is no useful work, and must not fill the disk.
const maxLogged = 60

// NewService creates a Service and begins to host jobs. It sets aside what an earlier, killed peer left in
// <Home>/scratch, and removes it in the background. Only one Service may use a home.
func NewService(h host.Host, c Config) (*Service, error) {
	home, err := filepath.Abs(c.Home)
	if err != nil {
		return nil, fmt.Errorf("scratch folder below %q: %w", c.Home, err)
	}
	s := &Service{
		host: h, config: c, scratch: filepath.Join(home, scratchFolder),
		conduct:       misconduct.New(c.Log),
		logPace:       misconduct.Pace{Times: maxLogged},
		reconnectPace: misconduct.Pace{Times: maxLogged},
		pending:       misconduct.NewQuota(maxPending, maxPendingEach),
		expected:      misconduct.NewQuota(math.MaxInt, maxPendingEach),
		jobs:          make(map[string]*job),
		kept:          make(map[*job]int64),
		gone:          make(chan struct{}),
	}
	if c.Dials == nil {
		s.config.Dials = dialfilter.New()
	}
	s.retains = scratch.Retains(home)
	s.idleTimer = newIdleTimer(s)
	s.groups = cgroup.Open(home)
	if s.groups.Missing(cgroup.CPU) != nil {
		s.session = supervisor.NewSession()
	}
	supervisor.KillStale(s.scratch)
	if err := scratch.SetAside(s.scratch); err != nil {
		c.Log.Error().Err(err).Msg("scratch folders of an earlier peer not removed")
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
	s.switchboard = &switchboard.Service{Host: h, Dials: s.config.Dials, Punches: c.Punches}
	if c.DataListen != "" {
		if s.switchboard.Entrance, err = entrance.Listen(s.ctx, c.DataListen, c.Mapped); err != nil {
			s.cancel()
			return nil, err
		}
	}
	stale := s.scratch
	s.serving.Go(func() { s.removeStale(stale) }) // ends with ctx
	h.SetStreamHandler(ControlProtocol, s.handle(s.serveControl))
	h.SetStreamHandler(ChannelProtocol, s.handle(s.serveChannel))
	return s, nil
}

// removeStale removes the scratch folders of an earlier peer in a folder, which may take long.
func (s *Service) removeStale(folder string) {
	if err := scratch.RemoveStale(s.ctx, folder); err != nil && s.ctx.Err() == nil {
		s.config.Log.Error().Err(err).Msg("scratch folders of an earlier peer not removed")
	}
}

// handle returns a handler that runs serve for each incoming stream. Once Close has begun, it resets new
// streams.
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

// enter registers the caller with serving, unless the service is closed.
func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.serving.Add(1)
	return true
}

// Close ends every job of the service, kills its processes, and returns when nothing of them is left.
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
	if e := s.switchboard.Entrance; e != nil {
		e.Close()
	}
	return nil
}

// claim registers j under its job ID. If an earlier attempt of the same submitter has not begun yet, claim
// ends it and waits for its removal. The submitter has given that attempt up, possibly without being able
// to say so.
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
			return fmt.Errorf("job %s of another submitter is already at this peer", j.spec.ID)
		}
		before.do(func() { // this peer may wait for the submitter to reconnect, or may not know that the connection was cut
			if before.settings.init == awaitsBegin {
				before.end(errNewAttempt)
			}
		})
		select {
		case <-gone:
		case <-ctx.Done():
			return fmt.Errorf("job %s is already at this peer", j.spec.ID)
		}
	}
}

// claimTimeout bounds the time in which an earlier attempt of a job must end.
const claimTimeout = 5 * time.Second

// forget removes j from the service, and returns the number of jobs that remain.
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

// A State is the phase of a hosted job. The package comment describes the phases.
type State string

// The states of a hosted job, in order.
const (
	Staging  State = "staging"
	Staged   State = "staged"
	Starting State = "starting"
	Running  State = "running"
	Ending   State = "ending"
)

// A JobStatus describes a hosted job to the owner: its processes and its submitter (O3).
type JobStatus struct {
	Job       string         `json:"job"`
	Submitter p2ppeer.ID     `json:"submitter"`
	Name      string         `json:"name"`   // name of the program
	Digest    string         `json:"digest"` // digest of the program
	Kind      policy.Kind    `json:"kind"`   // kind of the program
	Class     policy.Class   `json:"class"`  // class of the submitter, for the owner's policy
	Processes []view.Process `json:"processes"`
	Since     time.Time      `json:"since"`
	State     State          `json:"state"`
	Paused    time.Time      `json:"paused,omitzero"` // time since which its processes are suspended, see Pause; zero if they run
	Movable   bool           `json:"movable"`         // the job can continue without this peer
	Use       Use            `json:"use"`             // current resource use of a running job
}

// A Channel is a connection from a process of this peer to a process of another peer.
type Channel = switchboard.Channel

// Channels returns the channels that processes of this peer have opened to other peers, by job.
func (s *Service) Channels() map[string][]Channel {
	s.mu.Lock()
	jobs := slices.Collect(maps.Values(s.jobs))
	s.mu.Unlock()
	out := make(map[string][]Channel)
	for _, j := range jobs {
		if opened, ok := query(j, func() []Channel { return j.board.Channels() }); ok {
			out[j.spec.ID] = opened
		}
	}
	return out
}

// Jobs returns the jobs that this peer hosts, oldest first.
func (s *Service) Jobs() []JobStatus {
	s.mu.Lock()
	var jobs []JobStatus
	var hosted []*job
	for _, j := range s.jobs {
		hosted = append(hosted, j)
		var paused time.Time
		if j.state == Running && j.suspended.Load() {
			paused = j.reclaim.pausedAt
		}
		jobs = append(jobs, JobStatus{
			Job: j.spec.ID, Paused: paused, Submitter: j.submitter, Name: j.spec.Name, Digest: j.stager.program.Digest,
			Kind: j.admission.decision.Kind, Class: j.admission.decision.Class,
			Processes: slices.Clone(j.here.order), Since: j.since, State: j.state, Movable: s.canMigrate(j),
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

// Partners returns the peers that jobs here need, and how long each may be silent. It includes the jobs
// that are staged or have begun.
func (s *Service) Partners() map[p2ppeer.ID]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[p2ppeer.ID]time.Duration)
	for _, j := range s.jobs {
		for p, bears := range j.partners {
			out[p] = max(out[p], bears)
		}
	}
	return out
}

// Renew makes processes reopen their channels to a peer, after the connection to it was renewed. The
// channels may wait for a broken link, or for an address that has changed.
func (s *Service) Renew(peer p2ppeer.ID) {
	s.switchboard.RetryDirect(peer)
	s.mu.Lock()
	jobs := slices.Collect(maps.Values(s.jobs))
	s.mu.Unlock()
	for _, j := range jobs {
		j.do(func() { j.board.Renew(peer) })
	}
}

// keep records the data that a job keeps. It returns false if all jobs together would keep too much.
func (s *Service) keep(j *job, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, processes := bytes, len(j.here.order)
	for other, n := range s.kept {
		all, processes = all+n, processes+len(other.here.order)
	}
	if all > maxKept || processes > maxKeptProcesses {
		return false
	}
	s.kept[j] = bytes
	return true
}

// freeUnusedMemory returns unused memory to the system at once, and again when the peer is idle.
func (s *Service) freeUnusedMemory() {
	freeMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.idleTimer.Reset(idleAfter)
	}
}

// idle reports whether the service hosts no job.
func (s *Service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs) == 0
}

// idleAfter is the time after its last job until a peer counts as idle. Transfers in progress have ended by
// then.
const idleAfter = 3 * time.Second

// freeMemory returns unused memory to the system. Pools, such as buffers of file transfers, release their
// memory only at the second call.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}

// newIdleTimer returns the stopped timer of a service that may become idle.
func newIdleTimer(s *Service) *time.Timer {
	t := time.AfterFunc(idleAfter, func() {
		if !s.enter() {
			return
		}
		defer s.serving.Done()
		if s.idle() {
			freeMemory()
			s.session.Close()
		}
	})
	t.Stop()
	return t
}
