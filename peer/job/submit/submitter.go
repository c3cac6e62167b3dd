package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Config holds the settings and services of a Submitter. The services belong to the caller.
type Config struct {
	Host      host.Host      // able to open streams to itself, see package loopback
	Key       crypto.PrivKey // signs the jobs; the host's own
	Discovery *discovery.Service
	Files     *filetransfer.Service
	Detector  *faultdetect.Service
	Views     *viewgroup.Service
	Period    time.Duration // gossip period of the fault detector; 0 for its default
	Hang      time.Duration // silence that the fault detector tolerates
	Patient   bool          // tolerate longer silence in jobs without replicas; see outage.go
	Mode      faultdetect.Mode
	Log       zerolog.Logger
	// Outdated returns the peers that were met recently and run another protocol version, or nil if
	// none are known.
	Outdated func() []p2ppeer.ID
	// Site is the declared site of the submitter's machine, or empty.
	Site string
	// Owner returns the owner of a peer in a private network, as signed by the network's owner, or
	// "" if the owner is unknown. It is nil in an open network.
	Owner func(p2ppeer.ID) string
	// Jobs is the directory where jobs are kept so that another process of the submitter can resume
	// them; see Kept. If it is empty, a job ends with this process.
	Jobs string
	// Resident reports whether this is a peer to which users hand jobs. The process that resumes
	// such a job has Key itself, so Key is not kept with the job. When the job is over, its output
	// waits for the user here, in its EventQueue, not at the job's peers.
	Resident bool
}

// A Submitter runs jobs for the users of one peer.
type Submitter struct {
	cfg    Config
	holder *reservation.Client
	waits  waits

	mu       sync.Mutex
	jobs     map[string]Status
	partners map[string][]p2ppeer.ID // keyed by the ID of a job that is being staged or has started
	over     []string                // IDs of the most recent jobs that are over
}

// waits holds the durations for which a Submitter waits for peers. Only tests change them.
type waits struct {
	answers      time.Duration // time that peers asked for slots have to answer after the job has ended
	silence      time.Duration // silence of a peer that stages or starts; it reports progress far more often
	replaceAfter time.Duration // like silence, for a peer that another one can replace; added to the tolerated hang; longer than reportPeriod
	progress     time.Duration // time in which a peer has to make progress while it stages or starts, even if it sends reports
	output       time.Duration // time in which output of a process that has ended has to arrive, if another replica can lead the output; else silence
	disconnected time.Duration // disconnection of a peer that stages; the peer itself waits a little longer
	grace        time.Duration // time in which other peers that stage or start may fail too, after one has failed
	files        time.Duration // least time that replicas have to send file lists once the files of another replica are collected
	confirm      time.Duration // least time in which the answer of a finished job has to be confirmed; see confirmation
	stop         time.Duration // time that peers have to confirm that they have released everything of a job that is over
	notify       time.Duration // time in which disconnected peers can be told that the job is over
	reconnect    time.Duration // time that peers have to reconnect once the submitter is in touch with the majority
	wide         time.Duration // time to search for peers that have the job's files cached, after enough peers are found
	contact      time.Duration // time that a process that has resumed a job has to be in touch before the user is warned
	locate       time.Duration // time to dial a peer's last addresses before the peer is looked up
}

var defaultWaits = waits{
	answers: 2 * time.Second, silence: time.Minute, progress: 5 * time.Minute, output: 15 * time.Second, replaceAfter: 350 * time.Millisecond, disconnected: 15 * time.Second, grace: time.Second, files: time.Second, confirm: time.Minute, stop: 30 * time.Second, notify: 10 * time.Second,
	reconnect: 10 * time.Second, wide: time.Second, contact: 30 * time.Second, locate: 2 * time.Second,
}

// Status describes a job that this peer has submitted and that is not over.
type Status struct {
	Job   string    `json:"job"`
	Name  string    `json:"name"`
	N     int       `json:"n"`
	R     int       `json:"r"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
}

// NewSubmitter returns a submitter that uses the services in cfg.
func NewSubmitter(cfg Config) *Submitter {
	if cfg.Period == 0 {
		cfg.Period = faultdetect.DefaultPeriod
	}
	s := &Submitter{
		cfg: cfg, holder: reservation.NewClient(cfg.Host), waits: defaultWaits,
		jobs: make(map[string]Status), partners: make(map[string][]p2ppeer.ID),
	}
	jobpb.AnswerOver(cfg.Host, s.isOver)
	return s
}

// Jobs returns the jobs that are not over, oldest first.
func (s *Submitter) Jobs() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Status
	for _, j := range s.jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Status) int { return a.Since.Compare(b.Since) })
	return out
}

func (s *Submitter) setStatus(j Status) {
	s.mu.Lock()
	s.jobs[j.Job] = j
	s.mu.Unlock()
}

func (s *Submitter) forget(id string) {
	s.mu.Lock()
	delete(s.jobs, id)
	delete(s.partners, id)
	s.mu.Unlock()
}

// Candidates returns the peers that match the filter, offer slots and can be found now, nearest
// first. Callers use them to choose the platforms to build for and the number of replicas.
func (s *Submitter) Candidates(ctx context.Context, wanted discovery.Filter) ([]Candidate, error) {
	found, _, err := s.cfg.Discovery.Candidates(ctx, discovery.Need{All: true, Filter: wanted})
	if err != nil {
		return nil, fmt.Errorf("look for peers: %w", err)
	}
	out := make([]Candidate, len(found))
	for i, c := range found {
		out[i] = Candidate{Platform{c.Offer.OS, c.Offer.Arch}, c.Offer.SlotsFree, c.Offer.Machine, c.Offer.History}
	}
	return out, nil
}

// errTimeout is the cause of the end of a job that ran for longer than its Timeout.
var errTimeout = errors.New("timed out")

// Run runs one job to its end and puts its events into an EventQueue; the last event is the result. It
// returns when every reachable peer has released the job, and all output and the result are
// acknowledged. When ctx ends, or the EventQueue is closed, the job ends with StatusCancelled.
func (s *Submitter) Run(ctx context.Context, req Request, events *EventQueue) job.Result {
	if err := req.Validate(); err != nil {
		return refuse(events, job.Result{Status: job.StatusUsage, Message: err.Error()})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if req.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, req.Timeout, errTimeout)
		defer stop()
	}
	j := newRun(s, req)
	defer s.forget(j.spec.ID)
	var err error
	if !req.DryRun {
		j.keeper, err = s.keep(j)
	}
	defer j.keeper.close()
	defer j.keeper.conclude(ctx)
	j.events = events
	events.begin(j.keeper, cancel)
	defer events.finish()
	if err != nil {
		j.stopKeeping(err)
	}
	return j.conclude(j.run(ctx))
}

// stoppedBy returns the result of a job that ended because ctx ended.
func stoppedBy(ctx context.Context, req Request) *job.Result {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return &job.Result{
			Status:  job.StatusTimeout,
			Message: fmt.Sprintf("--timeout ended the job after %v", req.Timeout),
		}
	}
	text := "cancelled"
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		text += ": " + why.Error()
	}
	return &job.Result{Status: job.StatusCancelled, Message: text}
}
