package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// maxRequest bounds the body of a request, in bytes. A job with 200,000 input files fits.
const maxRequest = 64 << 20

// errEnds means that no more jobs are accepted.
var errEnds = errors.New("the peer is shutting down and accepts no more jobs")

// Jobs are the jobs that were submitted to a peer through its control socket.
type Jobs struct {
	life      context.Context // context of the peer
	submitter *submit.Submitter

	mu     sync.Mutex
	refuse bool           // true if no new jobs are accepted
	jobs   sync.WaitGroup // submitted here and not over; Add under mu
	handed []*handed
}

// NewJobs returns an empty set of jobs of a peer. They end with life.
func NewJobs(life context.Context, submitter *submit.Submitter) *Jobs {
	return &Jobs{life: life, submitter: submitter}
}

// Handlers returns the handlers of requests about jobs, by pattern.
func (j *Jobs) Handlers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /v1/jobs":             j.runJob,
		"POST /v1/jobs/{id}/attach": j.attachJob,
		"POST /v1/jobs/{id}/shown":  j.shownJob,
		"DELETE /v1/jobs/{id}":      j.cancelJob,
	}
}

// Refuse makes j refuse new jobs.
func (j *Jobs) Refuse() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refuse = true
}

// Await returns true when every job submitted here is over, or false when ctx ends.
func (j *Jobs) Await(ctx context.Context) bool {
	over := make(chan struct{})
	go func() { // ends with the jobs, which end with the peer's life and Cancel
		j.jobs.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// runJob runs a job and streams its events to the submitter.
func (j *Jobs) runJob(w http.ResponseWriter, r *http.Request) {
	var req submit.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("read job: %w", err))
		return
	}
	h, err := j.followJob("", req.Away, nil, func(ctx context.Context, events *submit.EventQueue) { j.submitter.Run(ctx, req, events) })
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	j.streamEvents(w, r, h)
}

// attachJob streams the events of a job that has no listener. If this peer does not run the job, it resumes
// the job of an earlier peer of this home that was killed.
func (j *Jobs) attachJob(w http.ResponseWriter, r *http.Request) {
	var why error
	if r.URL.Query().Get("cancel") == "true" {
		why = context.Canceled
	}
	id := r.PathValue("id")
	h, err := j.find(id)
	if err == nil {
		if err = h.addListener(); err == nil && why != nil {
			h.cancel(why)
		}
	} else if kept, wrong := j.submitter.Kept(id); wrong != nil {
		err = wrong
	} else {
		h, err = j.followJob(id, kept.Request.Away, why, func(ctx context.Context, events *submit.EventQueue) { j.submitter.Attach(ctx, id, events) })
	}
	if err != nil {
		fail(w, http.StatusConflict, fmt.Errorf("job %s: %w", id, err))
		return
	}
	j.streamEvents(w, r, h)
}

// followJob starts to follow a job with run, and registers the caller as its listener. A nonempty id is that
// of a kept job to resume. If why is not nil, followJob cancels the job before run starts.
func (j *Jobs) followJob(id string, away time.Duration, why error, run func(context.Context, *submit.EventQueue)) (*handed, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.refuse:
		return nil, errEnds
	case id != "" && j.lookUp(id) != nil:
		return nil, errHasListener // another client was faster
	}
	ctx, end := context.WithCancelCause(j.life)
	h := &handed{events: submit.NewEventQueue(id), end: end, over: make(chan struct{}), away: away, hasListener: true}
	j.handed = append(j.handed, h)
	if why != nil {
		h.cancel(why)
	}
	j.jobs.Go(func() { // ends with the job, which ends with the peer's life; Cancel ends one whose result waits
		run(ctx, h.events)
		j.forget(h)
		h.close()
	})
	return h, nil
}

func (j *Jobs) forget(h *handed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.handed = slices.DeleteFunc(j.handed, func(other *handed) bool { return other == h })
}

var errNoJob = errors.New("no such job was handed to this peer, or it has ended")

func (j *Jobs) find(id string) (*handed, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.lookUp(id); h != nil {
		return h, nil
	}
	return nil, errNoJob
}

// lookUp returns the job with the given ID, or nil. j.mu is held.
func (j *Jobs) lookUp(id string) *handed {
	for _, h := range j.handed {
		if h.events.Job() == id {
			return h
		}
	}
	return nil
}

// WithoutListenerSince returns when a job lost its listener, or zero if it has one. A nil Jobs has
// no jobs.
func (j *Jobs) WithoutListenerSince(id string) time.Time {
	if j == nil {
		return time.Time{}
	}
	if h, err := j.find(id); err == nil {
		return h.withoutListenerSince()
	}
	return time.Time{}
}

// streamEvents writes the job's events to w, one line each (see line), until it has written the result or the
// listener disconnects.
func (j *Jobs) streamEvents(w http.ResponseWriter, r *http.Request, h *handed) {
	defer h.removeListener()
	w.Header().Set("Content-Type", "application/x-ndjson")
	gone, told := r.Context().Done(), uint64(0)
	for next := h.events.State(); ; next = nil {
		next = append(next, h.events.After(told)...)
		if len(next) > 0 {
			if !write(w, next) {
				return
			}
			told = next[len(next)-1].Number
			continue
		}
		select {
		case <-h.events.Wake():
		case <-gone:
			if j.life.Err() == nil {
				return
			}
			gone = nil // the listener may still receive the result of the job, which is being cancelled
		case <-h.over:
			return
		}
	}
}

// write sends events, and reports whether more may follow.
func write(w http.ResponseWriter, events []submit.Numbered) bool {
	if id := events[0].Job; id != "" {
		w.Header().Set("Location", "/v1/jobs/"+id) // has an effect only before the first line
	}
	for _, e := range events {
		if newLine(e).write(w) != nil || e.Kind == submit.ResultEvent {
			return false
		}
	}
	return http.NewResponseController(w).Flush() == nil
}

// shownJob handles an acknowledgement: the user has received all lines up to a number.
func (j *Jobs) shownJob(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.ParseUint(r.URL.Query().Get("number"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("number: %w", err))
		return
	}
	h, err := j.find(r.PathValue("id"))
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	h.events.Acknowledge(number)
	w.WriteHeader(http.StatusNoContent)
}

// cancelJob handles a request to cancel a job.
func (j *Jobs) cancelJob(w http.ResponseWriter, r *http.Request) {
	h, err := j.find(r.PathValue("id"))
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	h.cancel(context.Canceled)
	w.WriteHeader(http.StatusNoContent)
}

// Cancel ends all submitted jobs for the given reason. Jobs without a listener would otherwise wait for an
// acknowledgement; the others end with the peer's life anyway.
func (j *Jobs) Cancel(why error) {
	j.mu.Lock()
	all := slices.Clone(j.handed)
	j.mu.Unlock()
	for _, h := range all {
		h.cancel(why)
	}
}
