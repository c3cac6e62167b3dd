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

// A collector brings the output files of a job that has succeeded into the user's directory.
type collector struct {
	j        *run
	state    *job.State
	peers    *membership
	accounts *job.Accounts                                               // nil: job without replicas
	next     func(ctx context.Context, also <-chan struct{}) *job.Result // see execution.handleNext

	answers   map[view.Process]*jobpb.Collected // file lists by process; nil until the answer arrives
	early     map[view.Process]*jobpb.Collected // lists that a resumed job has not requested yet; nil: not resumed
	unwritten bool                              // the files could not be written to the user's folder
}

// collect brings the output files of every rank into the user's directory, each rank's from one
// finished process (R6).
func (c *collector) collect(ctx context.Context) job.Result {
	begun := time.Now()
	collected := make([]fileList, c.j.req.N)
	for rank := range collected {
		c.j.phase(Collecting, int64(rank), int64(c.j.req.N))
		l, err := c.collectRank(ctx, rank)
		if err != nil {
			return c.uncollected(ctx, err, job.StatusLost, fmt.Sprintf("the output files of rank %d could not be collected", rank))
		}
		collected[rank] = l
	}
	unlike, err := c.compareFiles(ctx, begun, collected)
	manifests := make([]filetransfer.Manifest, len(collected))
	for rank, l := range collected {
		manifests[rank] = l.files
	}
	if err == nil {
		c.j.phase(Collecting, int64(c.j.req.N), int64(c.j.req.N))
		err = c.handleDuring(ctx, nil, func(ctx context.Context) error { return c.layOut(ctx, arrange(manifests)) })
	}
	if err != nil {
		c.unwritten = !final(ctx, err)
		return c.uncollected(ctx, err, job.StatusUsage, "its output files could not be written")
	}
	if !slices.ContainsFunc(manifests, func(m filetransfer.Manifest) bool { return len(m) > 0 }) {
		c.j.warn(fmt.Sprintf("no rank has written a file that matches -o %s", strings.Join(c.j.req.Outputs, " or ")))
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
func (c *collector) handleNextCollecting(ctx context.Context, also <-chan struct{}) error {
	if r := c.next(ctx, also); r != nil {
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
func (c *collector) uncollected(ctx context.Context, err error, status int, what string) job.Result {
	if over, ok := errors.AsType[ended](err); ok {
		return over.Result
	}
	if ctx.Err() != nil {
		return *stoppedBy(ctx, c.j.req)
	}
	return job.Result{Status: status, Message: fmt.Sprintf("the job succeeded, but %s: %v", what, err)}
}

// collectRank fetches a rank's files from the first finished process that can provide them. If no
// such process is left, it waits for processes that have yet to end.
func (c *collector) collectRank(ctx context.Context, rank int) (fileList, error) {
	cause := errors.New("none of its processes is left")
	for {
		p, ok, wait := c.fileSource(rank)
		switch {
		case ok:
			m, err := c.collectFrom(ctx, p)
			if err == nil || final(ctx, err) {
				return fileList{p, m}, err
			}
			c.j.log.Info().Err(err).Int("rank", p.Rank).Int("replica", p.Replica).Msg("files not collected")
			cause = err
		case !wait:
			return fileList{}, cause
		default:
			if err := c.handleNextCollecting(ctx, nil); err != nil {
				return fileList{}, err
			}
		}
	}
}

// fileSource returns a finished process of rank that was not asked for its files yet. If there is
// none, wait reports whether there may be one later.
func (c *collector) fileSource(rank int) (p view.Process, ok, wait bool) {
	v := c.state.View()
	for k := range v.R {
		p = view.Process{Rank: rank, Replica: k}
		_, asked := c.answers[p]
		switch state := v.State(p); {
		case state == view.Vacant || !c.peers.reaches(p) || asked || c.accounts != nil && c.accounts.Odd(p):
		case state == view.Finished:
			return p, true, false
		case state == view.Live:
			wait = true
		}
	}
	return p, false, wait
}

func (c *collector) collectFrom(ctx context.Context, p view.Process) (filetransfer.Manifest, error) {
	l := c.peers.runsOn[p] // set, since fileSource checks that
	if c.answers[p] == nil {
		c.askFiles(p)
	}
	for c.answers[p] == nil {
		if l.err != nil {
			return nil, fmt.Errorf("its peer is lost: %w", l.err)
		}
		if err := c.handleNextCollecting(ctx, nil); err != nil {
			return nil, err
		}
	}
	answer := c.answers[p]
	if answer.Error != "" {
		return nil, errors.New(plain(answer.Error))
	}
	m, err := filetransfer.UnmarshalManifest(answer.Manifest)
	if err != nil {
		return nil, err
	}
	for _, f := range m {
		// No other file may appear in the user's directory, whatever the peer offers.
		if !filetransfer.Named(c.j.req.Outputs, f.Path) {
			return nil, fmt.Errorf("its peer offers the file %q, which matches no pattern", plain(f.Path))
		}
	}
	show := c.showCollecting(p.Rank, m)
	err = c.handleDuring(ctx, l, func(ctx context.Context) error {
		return c.j.s.cfg.Files.Fetch(ctx, l.peer, c.j.spec.ID, m.Wants(), show)
	})
	if err != nil && l.err != nil {
		err = fmt.Errorf("its peer is lost: %w", l.err)
	}
	return m, err
}

// showCollecting returns a function that shows the user the rate at which a rank's files arrive and
// the time left.
func (c *collector) showCollecting(rank int, m filetransfer.Manifest) func(bytes int64) {
	var here, total int64
	store := c.j.s.cfg.Files.Store()
	for _, w := range m.Wants() {
		total += w.Size
		if store.Has(w.Digest) {
			here += w.Size
		}
	}
	t := transfer{run: c.j, phase: Collecting}
	t.pace.take(time.Now(), here)
	return func(bytes int64) {
		here += bytes
		now := time.Now()
		t.pace.take(now, here)
		t.tell(now, Event{Count: int64(rank), Total: int64(c.j.req.N), Rate: t.pace.rate(), ETA: t.pace.left(total)})
	}
}

// askFiles requests the list of p's files.
func (c *collector) askFiles(p view.Process) {
	if list := c.early[p]; list != nil { // the previous process asked for it
		c.answers[p] = list
		return
	}
	c.answers[p] = nil
	c.peers.runsOn[p].send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{
		Process: jobpb.FromProcess(p), Patterns: c.j.req.Outputs,
	}}})
}

// askAgain repeats the request for the list of p's files if the answer is missing.
func (c *collector) askAgain(p view.Process) {
	if answer, asked := c.answers[p]; asked && answer == nil {
		c.askFiles(p)
	}
}

// add records the list of p's files. The error means that it was not requested.
func (c *collector) add(p view.Process, m *jobpb.Collected) error {
	answer, asked := c.answers[p]
	if !asked && c.early != nil {
		c.early[p] = m
		return nil
	}
	if !asked || answer != nil {
		return fmt.Errorf("files of %v, which were not requested", p)
	}
	c.answers[p] = m
	return nil
}

// handleDuring handles events while work runs in another goroutine, so that views and heartbeats do
// not wait for it. It cancels the work when l is lost, unless l is nil, and when the job ends; the
// error is then an ended.
func (c *collector) handleDuring(ctx context.Context, l *link, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	var err error
	go func() { // ends with the work
		defer close(over)
		err = work(ctx)
	}()
	for {
		end := c.handleNextCollecting(ctx, over)
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
