package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// collect brings the output files of every rank into the user's directory, each rank's from one
// finished process (R6). It runs after the job has succeeded.
func (e *execution) collect(ctx context.Context) job.Result {
	begun := time.Now()
	collected := make([]fileList, e.j.req.N)
	for rank := range collected {
		e.j.phase(Collecting, int64(rank), int64(e.j.req.N))
		l, err := e.collectRank(ctx, rank)
		if err != nil {
			return e.uncollected(ctx, err, job.StatusLost, fmt.Sprintf("the output files of rank %d could not be collected", rank))
		}
		collected[rank] = l
	}
	unlike, err := e.compareFiles(ctx, begun, collected)
	manifests := make([]filetransfer.Manifest, len(collected))
	for rank, l := range collected {
		manifests[rank] = l.files
	}
	if err == nil {
		e.j.phase(Collecting, int64(e.j.req.N), int64(e.j.req.N))
		err = e.handleDuring(ctx, nil, func(ctx context.Context) error { return e.layOut(ctx, arrange(manifests)) })
	}
	if err != nil {
		e.unwritten = !final(ctx, err)
		return e.uncollected(ctx, err, job.StatusUsage, "its output files could not be written")
	}
	if !slices.ContainsFunc(manifests, func(m filetransfer.Manifest) bool { return len(m) > 0 }) {
		e.j.warn(fmt.Sprintf("no rank has written a file that matches -o %s", strings.Join(e.j.req.Outputs, " or ")))
	}
	if unlike != nil {
		return *unlike
	}
	return job.Result{Status: job.StatusOK}
}

// An ended is the result of a job that ended while its files were collected: replicas reported a
// divergence late, or the user cancelled the job.
type ended struct{ job.Result }

func (e ended) Error() string { return e.Message }

// handleNextCollecting handles the next event while files are collected, as handleNext does. Its
// error is an ended.
func (e *execution) handleNextCollecting(ctx context.Context, also <-chan struct{}) error {
	if r := e.handleNext(ctx, also); r != nil {
		return ended{*r}
	}
	return nil
}

// final reports whether, after err, it is useless to ask another process.
func final(ctx context.Context, err error) bool {
	_, over := errors.AsType[ended](err)
	return over || ctx.Err() != nil
}

// uncollected returns the result of a job whose files are not all in the user's directory: status
// with a message that contains what, unless the job ended otherwise meanwhile.
func (e *execution) uncollected(ctx context.Context, err error, status int, what string) job.Result {
	if over, ok := errors.AsType[ended](err); ok {
		return over.Result
	}
	if ctx.Err() != nil {
		return stoppedBy(ctx, e.j.req)
	}
	return job.Result{Status: status, Message: fmt.Sprintf("the job succeeded, but %s: %v", what, err)}
}

// collectRank fetches a rank's files from the first finished process that can provide them. If no
// such process is left, it waits for processes that have yet to end.
func (e *execution) collectRank(ctx context.Context, rank int) (fileList, error) {
	cause := errors.New("none of its processes is left")
	for {
		p, ok, wait := e.fileSource(rank)
		switch {
		case ok:
			m, err := e.collectFrom(ctx, p)
			if err == nil || final(ctx, err) {
				return fileList{p, m}, err
			}
			e.j.log.Info().Err(err).Int("rank", p.Rank).Int("replica", p.Replica).Msg("files not collected")
			cause = err
		case !wait:
			return fileList{}, cause
		default:
			if err := e.handleNextCollecting(ctx, nil); err != nil {
				return fileList{}, err
			}
		}
	}
}

// fileSource returns a finished process of rank that was not asked for its files yet. If there is
// none, wait reports whether there may be one later.
func (e *execution) fileSource(rank int) (p view.Process, ok, wait bool) {
	v := e.state.View()
	for k := range v.R {
		p = view.Process{Rank: rank, Replica: k}
		_, asked := e.answers[p]
		switch state := v.State(p); {
		case state == view.Vacant || !e.peers.reaches(p) || asked || e.accounts != nil && e.accounts.Odd(p):
		case state == view.Finished:
			return p, true, false
		case state == view.Live:
			wait = true
		}
	}
	return p, false, wait
}

func (e *execution) collectFrom(ctx context.Context, p view.Process) (filetransfer.Manifest, error) {
	l := e.peers.runsOn[p] // set, since fileSource checks that
	if e.answers[p] == nil {
		e.askFiles(p)
	}
	for e.answers[p] == nil {
		if l.err != nil {
			return nil, fmt.Errorf("its peer is lost: %w", l.err)
		}
		if err := e.handleNextCollecting(ctx, nil); err != nil {
			return nil, err
		}
	}
	answer := e.answers[p]
	if answer.Error != "" {
		return nil, errors.New(plain(answer.Error))
	}
	m, err := filetransfer.UnmarshalManifest(answer.Manifest)
	if err != nil {
		return nil, err
	}
	for _, f := range m {
		// No other file may appear in the user's directory, whatever the peer offers.
		if !filetransfer.Named(e.j.req.Outputs, f.Path) {
			return nil, fmt.Errorf("its peer offers the file %q, which matches no pattern", plain(f.Path))
		}
	}
	show := e.showCollecting(p.Rank, m)
	err = e.handleDuring(ctx, l, func(ctx context.Context) error {
		return e.j.s.cfg.Files.Fetch(ctx, l.peer, e.j.spec.ID, m.Wants(), show)
	})
	if err != nil && l.err != nil {
		err = fmt.Errorf("its peer is lost: %w", l.err)
	}
	return m, err
}

// showCollecting returns a function that shows the user the rate at which a rank's files arrive and
// the time left.
func (e *execution) showCollecting(rank int, m filetransfer.Manifest) func(bytes int64) {
	var here, total int64
	store := e.j.s.cfg.Files.Store()
	for _, w := range m.Wants() {
		total += w.Size
		if store.Has(w.Digest) {
			here += w.Size
		}
	}
	t := transfer{run: e.j, phase: Collecting}
	t.pace.take(time.Now(), here)
	return func(bytes int64) {
		here += bytes
		now := time.Now()
		t.pace.take(now, here)
		t.tell(now, Event{Count: int64(rank), Total: int64(e.j.req.N), Rate: t.pace.rate(), ETA: t.pace.left(total)})
	}
}

// askFiles requests the list of p's files.
func (e *execution) askFiles(p view.Process) {
	if e.resumption != nil && e.resumption.collected[p] != nil {
		e.answers[p] = e.resumption.collected[p] // the previous process asked for it
		return
	}
	e.answers[p] = nil
	e.peers.runsOn[p].send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{
		Process: jobpb.FromProcess(p), Patterns: e.j.req.Outputs,
	}}})
}

// collected records the list of p's files, if it was requested.
func (e *execution) collected(l *link, p view.Process, m *jobpb.Collected) *job.Result {
	answer, asked := e.answers[p]
	if !asked && e.resumption != nil {
		e.resumption.collected[p] = m
		return nil
	}
	if !asked || answer != nil {
		return e.protocolError(l, fmt.Errorf("files of %v, which were not requested", p))
	}
	e.answers[p] = m
	return nil
}

// handleDuring handles events while work runs in another goroutine, so that views and heartbeats do
// not wait for it. It cancels the work when l is lost, unless l is nil, and when the job ends; the
// error is then an ended.
func (e *execution) handleDuring(ctx context.Context, l *link, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	var err error
	go func() { // ends with the work
		defer close(over)
		err = work(ctx)
	}()
	for {
		end := e.handleNextCollecting(ctx, over)
		if end != nil || l != nil && l.err != nil {
			cancel()
			<-over
		}
		select {
		case <-over:
			return cmp.Or(end, err)
		default:
		}
	}
}
