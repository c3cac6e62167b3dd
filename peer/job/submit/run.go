package submit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
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
	s      *Submitter
	req    Request
	log    zerolog.Logger
	events *EventQueue
	keeper *keeper // nil: the job ends with this process

	spec       jobspec.Spec
	envelope   []byte
	inputs     filetransfer.Manifest
	local      map[filetransfer.Digest]filetransfer.Source // sources of the job's contents on this machine
	downloaded []filetransfer.Digest                       // contents that were downloaded

	status  Status
	resumed bool      // another process started the job
	until   time.Time // end of the job's time limit; zero: none
	known   knownPeers
}

func newRun(s *Submitter, req Request) *run {
	var id [16]byte
	rand.Read(id[:]) // never fails
	j := &run{
		s: s, req: req,
		known: knownPeers{s: s, excluded: make(map[p2ppeer.ID]bool), met: make(map[p2ppeer.ID]reservation.Candidate)},
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
	j.known.spec = &j.spec
	j.log = s.cfg.Log.With().Str("job", j.spec.ID).Logger()
	j.status = Status{Job: j.spec.ID, Name: req.Name, N: req.N, R: req.R, Since: j.spec.Created}
	return j
}

// emit queues an event for the user. It never blocks.
func (j *run) emit(e Event) {
	e.Job = j.spec.ID
	j.events.Put(e)
}

// emitOutput queues output. The error means that the peer has sent more than the user can have read.
func (j *run) emitOutput(e Event) error {
	j.emit(e)
	if unread := j.events.unreadOf(e.source()); unread > maxUnread {
		return fmt.Errorf("%d bytes of output of rank %d without an acknowledgement", unread, e.Rank)
	}
	return nil
}

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

// outdateRecord removes the record of the job, which err keeps from being replaced, and tells the user. It reports
// whether the record is removed.
func (j *run) outdateRecord(err error) bool {
	known := j.keeper.outdated
	if !j.keeper.outdate() {
		return false
	}
	if !known {
		j.warn(fmt.Sprintf("if this p2prun is killed, the job cannot be resumed, since it cannot be recorded; p2prun tries again to record it: %v", err))
	}
	return true
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
			return *stoppedBy(ctx, j.req)
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
		j.warnCorrelated(j.known.planned(reserved))
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
			return *stoppedBy(ctx, j.req)
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
			j.known.excluded[l.peer], any = true, true
		}
	}
	return any
}

// elapsed returns how long the job has been running.
func (j *run) elapsed() time.Duration { return time.Since(j.status.Since) }

// replaceAfter returns how long a peer that stages or starts the job may be silent if another peer
// can replace it: as long as the fault detector would wait.
func (j *run) replaceAfter() time.Duration { return j.s.cfg.Hang + j.s.waits.replaceAfter }

// startMessage returns a Start message for a view. The caller adds the membership table.
func (j *run) startMessage(v view.View) *jobpb.Start {
	m := &jobpb.Start{
		View: jobpb.FromView(v), Channels: j.req.Channels, Heal: j.req.heals(),
		AwayNs: int64(j.req.Away), Returns: j.keeper != nil,
	}
	if !j.until.IsZero() {
		m.LeftNs = int64(max(time.Until(j.until), 1))
	}
	return m
}

// conclude reports the job's result.
func (j *run) conclude(r job.Result) job.Result {
	j.emit(Event{Kind: ResultEvent, Result: &r})
	return r
}

// takenOver returns the result of a job that another process has resumed.
func (j *run) takenOver() *job.Result {
	return &job.Result{
		Status:  job.StatusLost,
		Message: fmt.Sprintf("another p2prun has resumed job %s", j.spec.ID),
		Hint:    "the output continues there; if that process ends before the job, p2prun --attach resumes the job",
	}
}

// hang returns the silence that the job's fault detector tolerates.
func (j *run) hang() time.Duration {
	switch cfg := j.s.cfg; {
	case !j.toleratesOutages():
		return cfg.Hang
	case cfg.Mode == faultdetect.Gossip: // gossip suspects a peer only after this time
		return minOutage
	}
	return maxOutage
}

// toleratesOutages reports whether the job waits longer for a silent peer than the tolerated hang.
func (j *run) toleratesOutages() bool { return j.req.R == 1 && j.s.cfg.Patient }

// plan tells the user where the job would run, and releases its slots.
func (j *run) plan(ctx context.Context, reserved *reservation.Reservation) job.Result {
	planned := j.known.planned(reserved)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	reserved.Release(ctx, j.s.holder)
	text := fmt.Sprintf("the job would start: %s on %s", english.Plural(j.req.N*j.req.R, "process", ""), english.Plural(len(planned), "peer", ""))
	j.emit(Event{Kind: PlannedEvent, Planned: planned, Text: text})
	j.warnCorrelated(planned)
	return job.Result{Status: job.StatusOK}
}

// warnCorrelated warns the user of ranks that one failure may stop with all their replicas.
func (j *run) warnCorrelated(planned []Planned) {
	if text := correlated(planned, j.req.N, j.req.R); text != "" {
		j.warn(text)
	}
}
