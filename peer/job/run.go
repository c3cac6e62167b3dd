package job

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
	"github.com/p2pmpi/p2pmpi/reservation"
)

// run is one job on its way. One goroutine, that of Submitter.Run, owns it.
type run struct {
	s       *Submitter
	req     Request
	log     zerolog.Logger
	printer *printer
	keeper  *keeper // nil: the job ends with this process

	spec       jobspec.Spec
	envelope   []byte
	inputs     filetransfer.Manifest
	local      map[filetransfer.Digest]filetransfer.Source // where the job's contents are here
	downloaded []filetransfer.Digest                       // those of them that were downloaded

	status   Status
	excluded map[p2ppeer.ID]bool                  // peers that could not stage or start the job
	met      map[p2ppeer.ID]reservation.Candidate // peers that it could run on
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

// emit tells the user something. It never blocks.
func (j *run) emit(e Event) { j.printer.print(item{event: e}) }

func (j *run) warn(text string) { j.emit(Event{Kind: WarningEvent, Text: text}) }

func (j *run) phase(p Phase, count, total int64) {
	j.status.Phase = p
	j.s.setStatus(j.status)
	j.emit(Event{Kind: PhaseEvent, Phase: p, Count: count, Total: total})
}

// waiting tells the user that the job waits for slots, and how long it will.
func (j *run) waiting(short *reservation.ShortageError, left time.Duration) {
	j.status.Phase = Waiting
	j.s.setStatus(j.status)
	j.emit(Event{
		Kind: PhaseEvent, Phase: Waiting, Count: int64(short.FoundSlots), Total: int64(short.NeededSlots()),
		Queue: &Queue{Place: short.Place.Place, Of: short.Place.Of, Left: left},
	})
}

// unkeep has the job end with this process, for a reason that the user hears.
func (j *run) unkeep(err error) {
	j.warn(fmt.Sprintf("the job ends with this process, since it cannot be kept: %v", err))
	j.keeper.remove()
	j.keeper.close()
	j.keeper = nil
}

// fruitlessAttempts bounds how often a job that its peers cannot stage or start looks for other
// peers without having found any that was at fault.
const fruitlessAttempts = 3

// attempts counts how often a job has been started in vain.
type attempts struct{ all, fruitless int }

// again counts an attempt that failed, and reports whether there is to be another. An attempt that
// excluded a peer does not count as long as the job may wait for slots: there are only so many peers, and
// those that fail on purpose must not use up the attempts of a job that others could run.
func (a *attempts) again(excluded, waits bool) bool {
	a.all++
	if !excluded || !waits {
		a.fruitless++
	}
	return a.fruitless < fruitlessAttempts
}

func (j *run) run(ctx context.Context) Result {
	defer j.s.cfg.Files.Store().Unpin(j.spec.ID)
	if err := j.describe(ctx); err != nil {
		if ctx.Err() != nil {
			return stoppedBy(ctx, j.req)
		}
		return Result{Status: StatusUsage, Message: err.Error()}
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
		err := e.prepare(ctx)
		if err == nil {
			return e.finish(ctx)
		}
		excluded := j.exclude(e)
		e.stop("could not be started everywhere")
		e.close()
		switch {
		case ctx.Err() != nil:
			return stoppedBy(ctx, j.req)
		case !made.again(excluded, time.Now().Before(deadline)):
			return Result{Status: StatusShortage, Message: fmt.Sprintf("gave up after %d attempts: %v", made.all, err)}
		}
		j.warn(err.Error())
	}
}

// exclude leaves the peers that were at fault out of the next attempt, and reports whether there are
// any.
func (j *run) exclude(e *execution) (any bool) {
	for _, l := range e.links {
		if l.err != nil {
			j.excluded[l.peer], any = true, true
		}
	}
	return any
}

// describe hashes what the job needs and signs the job.
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
		err = fmt.Errorf("the job's description has %d bytes, at most %d are taken: put long arguments into a file; programs may have about 6 GiB in all", len(j.envelope), jobspec.MaxEncoded)
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
		j.stow(ctx, p.Path, m[0])
		j.spec.Programs = append(j.spec.Programs, jobspec.Program{
			OS: p.OS, Arch: p.Arch, Digest: m[0].Digest.String(), Size: m[0].Size, Pieces: m[0].Pieces,
		})
	}
	return nil
}

// stow has a program that somebody has handed in a place of its own: what p2prun has built
// goes when that is killed, and a replica that is lost then needs it. Where there is no
// room for it, it stays where it is.
func (j *run) stow(ctx context.Context, program string, e filetransfer.Entry) {
	if !j.s.cfg.Resident || e.Size > maxStowed {
		return
	}
	store := j.s.cfg.Files.Store()
	content, err := os.ReadFile(program)
	if err == nil {
		_, err = store.Put(ctx, j.spec.ID, content)
	}
	if err != nil || !store.Has(e.Digest) {
		j.log.Info().Err(err).Msg("the program stays where it is")
		return
	}
	j.local[e.Digest] = filetransfer.Source{From: store.Path(e.Digest)}
}

// maxStowed is how large a program may be to be read into memory for that.
const maxStowed = 256 << 20
