package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// run is one job on its way. One goroutine, that of Submitter.Run, owns it.
type run struct {
	s      *Submitter
	req    Request
	cancel context.CancelCauseFunc
	log    zerolog.Logger

	emitting sync.Mutex
	sink     func(Event) error

	spec     jobspec.Spec
	envelope []byte
	inputs   filetransfer.Manifest
	local    map[filetransfer.Digest]string // where the job's contents are here

	status   Status
	excluded map[p2ppeer.ID]error // peers that could not stage
}

func newRun(s *Submitter, req Request, emit func(Event) error, cancel context.CancelCauseFunc) *run {
	var id [16]byte
	rand.Read(id[:]) // never fails
	j := &run{
		s: s, req: req, cancel: cancel, sink: emit,
		excluded: make(map[p2ppeer.ID]error),
		spec: jobspec.Spec{
			ID:        hex.EncodeToString(id[:]),
			Submitter: s.cfg.Host.ID(),
			Protocol:  version.Protocol,
			Created:   time.Now().UTC(),
			N:         req.N,
			R:         req.R,
			Name:      req.Name,
			Args:      req.Args,
		},
	}
	j.log = s.cfg.Log.With().Str("job", j.spec.ID).Logger()
	j.status = Status{Job: j.spec.ID, Name: req.Name, N: req.N, R: req.R, Since: j.spec.Created}
	return j
}

// emit tells the user something; a user who does not listen ends the job.
func (j *run) emit(e Event) error {
	j.emitting.Lock()
	defer j.emitting.Unlock()
	e.Time, e.Job = time.Now(), j.spec.ID
	err := j.sink(e)
	if err != nil {
		j.cancel(fmt.Errorf("nobody listens: %w", err))
	}
	return err
}

func (j *run) phase(p Phase, count, total int64) {
	j.status.Phase = p
	j.s.setStatus(j.status)
	j.emit(Event{Kind: PhaseEvent, Phase: p, Count: count, Total: total})
}

// stageAttempts bounds how often a job whose peers cannot stage it looks for
// others.
const stageAttempts = 3

func (j *run) run(ctx context.Context) Result {
	if err := j.describe(ctx); err != nil {
		if ctx.Err() != nil {
			return stoppedBy(ctx, j.req)
		}
		return Result{Status: StatusUsage, Message: err.Error()}
	}
	defer j.s.cfg.Files.Store().Unpin(j.spec.ID)
	deadline := time.Now().Add(j.req.Wait)
	for attempt := 1; ; attempt++ {
		reserved, result := j.reserve(ctx, deadline)
		if result != nil {
			return *result
		}
		e, err := j.prepare(ctx, reserved)
		if err == nil {
			return e.finish(ctx)
		}
		if ctx.Err() != nil {
			return stoppedBy(ctx, j.req)
		}
		j.emit(Event{Kind: WarningEvent, Text: err.Error()})
		if attempt == stageAttempts {
			return Result{Status: StatusShortage, Message: err.Error()}
		}
	}
}

// describe hashes what the job needs and signs the job.
func (j *run) describe(ctx context.Context) error {
	j.phase(Discovering, 0, 0)
	var err error
	if j.inputs, err = filetransfer.Build(ctx, j.req.Inputs); err != nil {
		return err
	}
	j.local = filetransfer.Locate(j.inputs, j.req.Inputs)
	if err := j.describePrograms(ctx); err != nil {
		return err
	}
	encoded, err := j.inputs.Marshal()
	if err != nil {
		return fmt.Errorf("list of input files: %w", err)
	}
	store := j.s.cfg.Files.Store()
	digest, err := store.Put(ctx, j.spec.ID, encoded)
	if err != nil {
		return fmt.Errorf("keep list of input files: %w", err)
	}
	j.local[digest] = store.Path(digest)
	j.spec.Inputs, j.spec.InputsLen = digest.String(), int64(len(encoded))
	j.envelope, err = j.spec.Sign(j.s.cfg.Key)
	return err
}

func (j *run) describePrograms(ctx context.Context) error {
	for _, p := range j.req.Programs {
		source := []filetransfer.Source{{Path: "program", From: p.Path}}
		m, err := filetransfer.Build(ctx, source)
		if err != nil {
			return fmt.Errorf("program: %w", err)
		}
		if m[0].Size == 0 {
			return fmt.Errorf("program %s: the file is empty", p.Path)
		}
		maps.Copy(j.local, filetransfer.Locate(m, source))
		j.spec.Programs = append(j.spec.Programs, jobspec.Program{
			OS: p.OS, Arch: p.Arch, Digest: m[0].Digest.String(), Size: m[0].Size,
		})
	}
	return nil
}

// release gives reserved slots back, also when the job's own context has ended.
// What cannot be reached expires by itself.
func release(reserved *reservation.Reservation) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	reserved.Release(ctx)
}

const releaseTimeout = 5 * time.Second
