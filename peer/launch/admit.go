package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// An admission holds the contents of a valid Prepare.
type admission struct {
	spec         *jobspec.Spec
	signed       string          // SHA-256 of the signed spec, signature included
	programKinds []policy.Kind   // kinds of programs that it provides for this machine
	program      jobspec.Program // program for this machine
	decision     policy.Decision // decision of the owner's policy
	key          reservation.Key
	processes    []view.Process
	joining      bool     // the only process joins a rank of a running job
	fellows      []fellow // peers with which this peer shares the files that it fetches
}

// A fellow is another peer of the job.
type fellow struct {
	p2ppeer.AddrInfo
	near bool // at this peer's site
}

// A decider is the owner's policy. It decides which of the kinds of programs that a submitter's job
// provides for this machine may run.
type decider func(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision

// checkPrepare checks a first message. It must be a Prepare, sent by the job's own submitter, that this
// machine can run and its owner allows. It has no side effects.
func checkPrepare(m *jobpb.ToPeer, submitter p2ppeer.ID, os, arch string, decide decider) (a admission, err error) {
	p := m.GetPrepare()
	if p == nil {
		return a, errors.New("the first message was not Prepare")
	}
	if a.spec, err = jobspec.Verify(p.Spec); err != nil {
		return a, err
	}
	sum := sha256.Sum256(p.Spec)
	a.signed = hex.EncodeToString(sum[:])
	if a.spec.Submitter != submitter {
		return a, fmt.Errorf("job of %s was sent by %s", a.spec.Submitter, submitter)
	}
	if a.key, err = readKey(p.Key); err != nil {
		return a, err
	}
	a.joining = p.Joining
	check := checkProcesses
	if a.joining {
		check = checkJoiner
	}
	if a.processes, err = check(p.Processes, a.spec.N, a.spec.R); err != nil {
		return a, err
	}
	if a.fellows, err = readFellows(p.Fellows); err != nil {
		return a, err
	}
	return a, a.choose(os, arch, decide)
}

// choose selects the best program for this machine that its owner allows.
func (a *admission) choose(os, arch string, decide decider) error {
	native, hasNative := a.spec.Program(os, arch)
	module, hasModule := a.spec.Program(jobspec.WasmOS, jobspec.WasmArch)
	if hasNative {
		a.programKinds, a.program = append(a.programKinds, policy.Native), native
	}
	if hasModule {
		a.programKinds = append(a.programKinds, policy.Wasm)
	}
	if len(a.programKinds) == 0 {
		return fmt.Errorf("job has no program for %s/%s", os, arch)
	}
	a.decision = decide(a.spec.Submitter, a.programKinds)
	if !hasNative || a.decision.Kind == policy.Wasm {
		a.program = module
	}
	if a.decision.Refused != "" {
		return fmt.Errorf("its owner's policy: %s", a.decision.Refused)
	}
	return nil
}

// describe adds what is known about a refused job to a log line.
func (a *admission) describe(line *zerolog.Event) {
	if a.spec == nil {
		return
	}
	line.Str("job", a.spec.ID).Str("class", string(a.decision.Class)).Str("name", a.spec.Name).
		Any("kinds", a.programKinds).Str("digest", a.program.Digest).Str("signed", a.signed)
}

// readFellows reads the peers with which this peer shares the files that it fetches.
func readFellows(in []*jobpb.Fellow) ([]fellow, error) {
	if len(in) > filetransfer.MaxMembers {
		return nil, fmt.Errorf("files shared with %d peers, at most %d are allowed", len(in), filetransfer.MaxMembers)
	}
	var fellows []fellow
	for _, f := range in {
		id, err := p2ppeer.IDFromBytes(f.GetPeer())
		if err != nil {
			return nil, fmt.Errorf("files shared with a peer of invalid ID: %w", err)
		}
		info := p2ppeer.AddrInfo{ID: id, Addrs: switchboard.ReadAddrs(f.GetAddrs(), jobpb.MaxAddrs)}
		fellows = append(fellows, fellow{info, f.GetNear()})
	}
	return fellows, nil
}

// checkProcesses reads the processes that a peer is to run. There must be at least one. All must belong to
// a job of n ranks with r replicas. No two may be of one rank, since they would fail together.
func checkProcesses(ps []*jobpb.Process, n, r int) ([]view.Process, error) {
	if len(ps) == 0 {
		return nil, errors.New("no processes to run")
	}
	ranks := make(map[int]bool, len(ps))
	processes := make([]view.Process, 0, len(ps))
	for _, m := range ps {
		p := m.View()
		if p.Rank < 0 || p.Rank >= n || p.Replica < 0 || p.Replica >= r {
			return nil, fmt.Errorf("process %v of a job with n=%d r=%d", p, n, r)
		}
		if ranks[p.Rank] {
			return nil, fmt.Errorf("two processes of rank %d on one peer", p.Rank)
		}
		ranks[p.Rank] = true
		processes = append(processes, p)
	}
	return processes, nil
}

// checkJoiner reads the process that is to join a rank of a job that began with n ranks and r replicas.
func checkJoiner(ps []*jobpb.Process, n, r int) ([]view.Process, error) {
	if len(ps) != 1 {
		return nil, fmt.Errorf("%d processes join, want 1", len(ps))
	}
	p := ps[0].View()
	if p.Rank < 0 || p.Rank >= n || p.Replica < r || p.Replica >= view.MaxReplicas {
		return nil, fmt.Errorf("process %v joins a job with n=%d r=%d", p, n, r)
	}
	return []view.Process{p}, nil
}

// newJob returns the job that a describes, before any work is done for it. It takes little memory, since
// anyone can request a job.
func newJob(s *Service, a admission) *job {
	j := &job{
		service: s, admission: a, spec: a.spec,
		submitter: a.spec.Submitter, here: processSet{order: a.processes, local: make(map[view.Process]*process), dropping: make(map[view.Process]reservation.Key)},
		since: time.Now(), state: Staging,
		log: s.config.Log.With().Str("job", a.spec.ID).Logger(),

		grant:   s.Grant().Min(limits.Grant{Slot: a.decision.Limits}),
		folder:  scratch.At(s.scratch, a.spec.ID),
		events:  make(chan func()),
		done:    make(chan struct{}),
		metered: make(chan *meter),
	}
	j.stager.files, j.stager.spec, j.stager.program, j.stager.folder = s.config.Files, a.spec, a.program, j.folder
	j.confinement = newConfinement(s, a, j.grant, j.folder)
	j.ctx, j.cancel = context.WithCancel(s.ctx)
	return j
}
