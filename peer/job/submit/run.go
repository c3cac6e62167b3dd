package submit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// run is one job of a Submitter. One goroutine, that of Submitter.Run, owns it.
type run struct {
	s       *Submitter
	req     Request
	log     zerolog.Logger
	printer *printer
	keeper  *keeper // nil: the job ends with this process

	spec       jobspec.Spec
	envelope   []byte
	inputs     filetransfer.Manifest
	local      map[filetransfer.Digest]filetransfer.Source // sources of the job's contents on this machine
	downloaded []filetransfer.Digest                       // contents that were downloaded

	status   Status
	resumed  bool                                 // another process started the job
	until    time.Time                            // end of the job's time limit; zero: none
	excluded map[p2ppeer.ID]bool                  // peers that failed to stage or start the job
	met      map[p2ppeer.ID]reservation.Candidate // candidates found so far
}

func newRun(s *Submitter, req Request) *run {
	var id [16]byte
	rand.Read(id[:]) // never fails
	j := &run{
		s: s, req: req,
		excluded: make(map[p2ppeer.ID]bool),
		met:      make(map[p2ppeer.ID]reservation.Candidate),
		spec: jobspec.Spec{
			ID:        hex.EncodeToString(id[:]),
			Submitter: s.cfg.Host.ID(),
			Protocol:  version.Protocol,
			Created:   time.Now().UTC(),
			N:         req.N,
			R:         req.R,
			Name:      req.Name,
			Args:      req.Args,
			Settings:  req.Settings,
		},
	}
	j.log = s.cfg.Log.With().Str("job", j.spec.ID).Logger()
	j.status = Status{Job: j.spec.ID, Name: req.Name, N: req.N, R: req.R, Since: j.spec.Created}
	return j
}

// emit queues an event for the user. It never blocks.
func (j *run) emit(e Event) { j.printer.print(item{event: e}) }

func (j *run) warn(text string) { j.emit(Event{Kind: WarningEvent, Text: text}) }

func (j *run) phase(p Phase, count, total int64) {
	j.status.Phase = p
	j.s.setStatus(j.status)
	j.emit(Event{Kind: PhaseEvent, Phase: p, Count: count, Total: total})
}

// waiting tells the user that the job waits for slots, and for how long at most.
func (j *run) waiting(short *reservation.ShortageError, left time.Duration) {
	j.status.Phase = Waiting
	j.s.setStatus(j.status)
	j.emit(Event{
		Kind: PhaseEvent, Phase: Waiting, Count: int64(short.FoundSlots), Total: int64(short.NeededSlots()),
		Queue: &Queue{Place: short.Place.Place, Of: short.Place.Of, Left: left},
	})
}

// stopKeeping stops keeping the job, which then ends with this process, and tells the user why.
func (j *run) stopKeeping(err error) {
	j.warn(fmt.Sprintf("the job ends with this process, since it cannot be kept: %v", err))
	j.keeper.remove()
	j.keeper.close()
	j.keeper = nil
}

// fruitlessAttempts limits the attempts to stage and start a job in which no faulty peer was found.
const fruitlessAttempts = 3

// attempts counts the failed attempts to start a job.
type attempts struct{ all, fruitless int }

// again counts a failed attempt and reports whether to make another. An attempt that excluded a
// peer does not count while the job may wait for slots. The number of peers is finite, and peers
// that fail on purpose must not use up the attempts of a job that others could run.
func (a *attempts) again(excluded, waits bool) bool {
	a.all++
	if !excluded || !waits {
		a.fruitless++
	}
	return a.fruitless < fruitlessAttempts
}

func (j *run) run(ctx context.Context) job.Result {
	defer j.s.cfg.Files.Store().Unpin(j.spec.ID)
	if err := j.describe(ctx); err != nil {
		if ctx.Err() != nil {
			return stoppedBy(ctx, j.req)
		}
		return job.Result{Status: job.StatusUsage, Message: err.Error()}
	}
	j.phase(Discovering, 0, 0)
	deadline := time.Now().Add(j.req.Wait)
	for made := (attempts{}); ; {
		reserved, result := j.reserve(ctx, deadline)
		if result != nil {
			return *result
		}
		if j.req.DryRun {
			return j.plan(ctx, reserved)
		}
		j.warnCorrelated(j.planned(reserved))
		e := newExecution(j, reserved)
		e.peers.serveSites()
		start := e.startup()
		err := start.prepare(ctx)
		if err == nil {
			return e.finish(ctx, start.early)
		}
		excluded := j.exclude(e)
		e.stop("could not be started everywhere")
		e.close()
		switch {
		case ctx.Err() != nil:
			return stoppedBy(ctx, j.req)
		case !made.again(excluded, time.Now().Before(deadline)):
			return job.Result{Status: job.StatusShortage, Message: fmt.Sprintf("gave up after %d attempts: %v", made.all, err)}
		}
		j.warn(err.Error())
	}
}

// exclude excludes the peers that were at fault from the next attempt, and reports whether there
// were any.
func (j *run) exclude(e *execution) (any bool) {
	for _, l := range e.peers.links {
		if l.err != nil {
			j.excluded[l.peer], any = true, true
		}
	}
	return any
}

// describe hashes the program and the input files, and signs the job.
func (j *run) describe(ctx context.Context) error {
	err := errors.Join(checkOutputDir(j.req), checkUnused(j.req))
	if err != nil {
		return err
	}
	files, err := j.download(ctx)
	if err != nil {
		return err
	}
	files = slices.Concat(files, j.req.Inputs)
	if j.inputs, err = filetransfer.Build(ctx, files); err != nil {
		return err
	}
	j.local = filetransfer.Locate(j.inputs, files)
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
	j.local[digest] = filetransfer.Source{From: store.Path(digest)}
	list := filetransfer.WantOf(encoded)
	j.spec.Inputs, j.spec.InputsLen, j.spec.InputsPieces = digest.String(), list.Size, list.Pieces
	j.envelope, err = j.spec.Sign(j.s.cfg.Key)
	if len(j.envelope) > jobspec.MaxEncoded {
		err = fmt.Errorf("the job's description has %d bytes, at most %d are allowed: put long arguments into a file; programs may have about 6 GiB in total", len(j.envelope), jobspec.MaxEncoded)
	}
	if err != nil {
		return err
	}
	if err := j.keeper.writeWork(j); err != nil {
		j.warn(unreplaced(err))
	}
	return nil
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
		j.storeProgram(ctx, p.Path, m[0])
		j.spec.Programs = append(j.spec.Programs, jobspec.Program{
			OS: p.OS, Arch: p.Arch, Digest: m[0].Digest.String(), Size: m[0].Size, Pieces: m[0].Pieces,
		})
	}
	return nil
}

// storeProgram copies a program that a p2prun has handed to a resident peer into the store. A
// program that a p2prun has built is lost if that p2prun is killed, and a replacement for a lost
// replica still needs it. If the copy fails, for instance for lack of space, the job continues to
// use the original file.
func (j *run) storeProgram(ctx context.Context, program string, e filetransfer.Entry) {
	if !j.s.cfg.Resident || e.Size > maxStoredProgram {
		return
	}
	store := j.s.cfg.Files.Store()
	content, err := os.ReadFile(program)
	if err == nil {
		_, err = store.Put(ctx, j.spec.ID, content)
	}
	if err != nil || !store.Has(e.Digest) {
		j.log.Info().Err(err).Msg("the program is used from its original path")
		return
	}
	j.local[e.Digest] = filetransfer.Source{From: store.Path(e.Digest)}
}

// maxStoredProgram limits, in bytes, the size of a program that storeProgram reads into memory.
const maxStoredProgram = 256 << 20

// heals reports whether lost replicas are replaced.
func (j *run) heals() bool { return j.req.Heal && j.req.R > 1 }

// elapsed returns how long the job has been running.
func (j *run) elapsed() time.Duration { return time.Since(j.status.Since) }

// replaceAfter returns how long a peer that stages or starts the job may be silent if another peer
// can replace it: as long as the fault detector would wait.
func (j *run) replaceAfter() time.Duration { return j.s.cfg.Hang + j.s.waits.replaceAfter }

// startMessage returns a Start message for a view. The caller adds the membership table.
func (j *run) startMessage(v view.View) *jobpb.Start {
	m := &jobpb.Start{
		View: jobpb.FromView(v), Channels: j.req.Channels, Heal: j.heals(),
		AwayNs: int64(j.req.Away), Returns: j.keeper != nil,
	}
	if !j.until.IsZero() {
		m.LeftNs = int64(max(time.Until(j.until), 1))
	}
	return m
}
