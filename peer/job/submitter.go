package job

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
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Config is what a Submitter works with. The services belong to the caller.
type Config struct {
	Host      host.Host      // able to open streams to itself, see package loopback
	Key       crypto.PrivKey // signs the jobs; the host's own
	Discovery *discovery.Service
	Files     *filetransfer.Service
	Detector  *faultdetect.Service
	Views     *viewgroup.Service
	Period    time.Duration // of the fault detector's gossip; 0 for its default
	Hang      time.Duration // that it tolerates
	Patient   bool          // of a peer of a job without replicas it tolerates more: see patience.go
	Mode      faultdetect.Mode
	Log       zerolog.Logger
	// Outdated returns the peers that were met lately and speak another version; nil: none are known.
	Outdated func() []p2ppeer.ID
	// Site is the declared site of the submitter's machine, or empty.
	Site string
	// Owner returns who owns a peer of a private network, as the network's owner has signed it, or "" if
	// that is not known; nil: the network is an open one.
	Owner func(p2ppeer.ID) string
	// Jobs is the folder where a job is kept so that another process of the submitter
	// can go on with it: see Kept. Empty: it ends with this one.
	Jobs string
	// Resident says that this is a peer to which jobs are handed. Whoever goes on with one has
	// Key by himself: it is not kept there. And what a Sink has taken waits here for the user,
	// not at the job's peers, when the job is over.
	Resident bool
}

// A Submitter runs jobs for the users of one peer.
type Submitter struct {
	cfg    Config
	holder *reservation.Client
	waits  waits

	mu       sync.Mutex
	jobs     map[string]Status
	partners map[string][]p2ppeer.ID // of each that has begun
	over     []string                // the latest jobs that are over
}

// waits is how long a Submitter waits for peers. Constant but for tests, which
// shorten the times.
type waits struct {
	// answers is how long peers that are being asked for slots have to answer when
	// the job has been ended meanwhile.
	answers time.Duration
	// silence is how long a peer may say nothing while it stages or starts. It
	// reports progress far more often than this.
	silence time.Duration
	// lull is how long a peer may say nothing meanwhile, beside the tolerated hang, if another
	// can take its place: it says something every reportPeriod.
	lull time.Duration
	// progress is how long a peer may stage or start without any progress, whatever it says.
	progress time.Duration
	// output bounds the time without new output of a process that has ended but has output left, if another
	// replica can speak for its rank. Otherwise silence is the bound.
	output time.Duration
	// apart is how long a peer that stages may be disconnected. It waits a little longer.
	apart time.Duration
	// grace is how long peers that stage or start have to say that they fail
	// too, once one has.
	grace time.Duration
	// files is how long replicas have at least for the list of their files, when those of
	// others are here.
	files time.Duration
	// confirm is the least time that a job that is done waits for its answer to be confirmed; see hearOut.
	confirm time.Duration
	// stop is how long peers have for freeing everything of a job that is over
	// before the submitter stops waiting for their word.
	stop time.Duration
	// tell is how long peers that are cut off are tried to be told that the job is over.
	tell time.Duration
	// back is how long peers have to come back once the submitter is in touch with the
	// majority.
	back time.Duration
	// wide is for how long peers are looked for that may have the job's files, when there are
	// enough already.
	wide time.Duration
	// locate is how long until a peer is looked up that does not come back where it was.
	locate time.Duration
}

var defaultWaits = waits{
	answers: 2 * time.Second, silence: time.Minute, progress: 5 * time.Minute, output: 15 * time.Second, lull: 350 * time.Millisecond, apart: 15 * time.Second, grace: time.Second, files: time.Second, confirm: time.Minute, stop: 30 * time.Second, tell: 10 * time.Second,
	back: 10 * time.Second, wide: time.Second, locate: 2 * time.Second,
}

// Status is a job that this peer has submitted and that is not over.
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

// Jobs returns the jobs that are running, oldest first.
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

// Candidates returns the peers that are wanted, offer slots and can be found now, nearest
// first, so that a program can be built for them and replicas chosen.
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

// errTimeout is the cause of a job that took longer than its Timeout.
var errTimeout = errors.New("timed out")

// Run runs one job to its end, and tells sink what happens; the last event is the
// result. It returns when every peer that can be reached has released the job, and sink is
// done with all output and the result. Calls of sink do not overlap, and one that blocks
// holds up only the output. When ctx ends the job does, with StatusCancelled.
func (s *Submitter) Run(ctx context.Context, req Request, sink Sink) Result {
	if err := req.Validate(); err != nil {
		return refuse(sink, Result{Status: StatusUsage, Message: err.Error()})
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
	j.printer = newPrinter(j.spec.ID, sink, func(err error) { cancel(fmt.Errorf("nobody listens: %w", err)) }, j.keeper, s.cfg.Resident)
	defer j.printer.close()
	if err != nil {
		j.unkeep(err)
	}
	return j.conclude(j.run(ctx))
}

// stoppedBy is the result of a job that ended because ctx did.
func stoppedBy(ctx context.Context, req Request) Result {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return Result{
			Status:  StatusTimeout,
			Message: fmt.Sprintf("the job was ended after %v, as --timeout says", req.Timeout),
		}
	}
	text := "cancelled"
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		text += ": " + why.Error()
	}
	return Result{Status: StatusCancelled, Message: text}
}
