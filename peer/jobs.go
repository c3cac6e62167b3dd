package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// maxRequest bounds the body of a request, in bytes. A job with 200,000 input files fits.
const maxRequest = 64 << 20

// errEnds means that no more jobs are accepted.
var errEnds = errors.New("the peer is about to end and takes no more jobs")

// runJob runs a job and streams its events to the submitter.
func (c *control) runJob(w http.ResponseWriter, r *http.Request) {
	var req submit.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("read job: %w", err))
		return
	}
	h, err := c.hand("", req.Away, nil, func(ctx context.Context, sink submit.Sink) { c.peer.submitter.Run(ctx, req, sink) })
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	c.speak(w, r, h)
}

// attachJob streams the events of a job that has no listener. If this peer does not run the job, it resumes
// the job of an earlier peer of this home that was killed.
func (c *control) attachJob(w http.ResponseWriter, r *http.Request) {
	var why error
	if r.URL.Query().Get("cancel") == "true" {
		why = context.Canceled
	}
	id := r.PathValue("id")
	h, err := c.find(id)
	if err == nil {
		if err = h.listen(); err == nil && why != nil {
			h.cancel(why)
		}
	} else if kept, wrong := c.peer.submitter.Kept(id); wrong != nil {
		err = wrong
	} else {
		h, err = c.hand(id, kept.Request.Away, why, func(ctx context.Context, sink submit.Sink) { c.peer.submitter.Attach(ctx, id, sink) })
	}
	if err != nil {
		fail(w, http.StatusConflict, fmt.Errorf("job %s: %w", id, err))
		return
	}
	c.speak(w, r, h)
}

// hand starts to follow a job with run, and registers the caller as its listener. A nonempty id is that of
// a kept job to resume. If why is not nil, hand cancels the job before run starts.
func (c *control) hand(id string, away time.Duration, why error, run func(context.Context, submit.Sink)) (*handed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refuse:
		return nil, errEnds
	case c.handed[id] != nil:
		return nil, errListened // another client was faster
	}
	ctx, end := context.WithCancelCause(c.peer.life)
	h := &handed{audience: newAudience(), end: end, over: make(chan struct{}), away: away, kept: id != "", listened: true}
	if id != "" {
		c.handed[id] = h
	}
	if why != nil {
		h.cancel(why)
	}
	c.jobs.Go(func() { // ends with the job, which ends with the peer's life; cancelJobs ends one whose result waits
		run(ctx, func(e submit.Event, done func(error)) {
			if e.Job != "" && id == "" {
				id = e.Job
				c.name(id, h)
			}
			h.take(e, done)
		})
		c.forget(id)
		h.close()
	})
	return h, nil
}

// name registers a job under its ID.
func (c *control) name(id string, h *handed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handed[id] = h
}

func (c *control) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handed, id)
}

var errNoJob = errors.New("no such job was handed to this peer, or it is over")

func (c *control) find(id string) (*handed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.handed[id]; h != nil {
		return h, nil
	}
	return nil, errNoJob
}

// unheard returns the time since when a job has no listener; zero if it has one. A nil control has no jobs.
func (c *control) unheard(id string) time.Time {
	if c == nil {
		return time.Time{}
	}
	if h, err := c.find(id); err == nil {
		return h.unheard()
	}
	return time.Time{}
}

// speak writes the job's events to w, one line each (see line), until it has written the result or the
// listener hangs up.
func (c *control) speak(w http.ResponseWriter, r *http.Request, h *handed) {
	defer h.hangUp()
	w.Header().Set("Content-Type", "application/x-ndjson")
	gone, told := r.Context().Done(), uint64(0)
	for next := h.audience.preface(); ; next = nil {
		next = append(next, h.audience.after(told)...)
		if len(next) > 0 {
			if !write(w, next) {
				return
			}
			told = next[len(next)-1].Number
			continue
		}
		select {
		case <-h.audience.wake:
		case <-gone:
			if c.peer.life.Err() == nil {
				return
			}
			gone = nil // the listener may still receive the result of the job, which is being cancelled
		case <-h.over:
			return
		}
	}
}

// write sends lines, and reports whether more may follow.
func write(w http.ResponseWriter, lines []line) bool {
	if id := lines[0].Job; id != "" {
		w.Header().Set("Location", "/v1/jobs/"+id) // has an effect only before the first line
	}
	for _, l := range lines {
		if l.write(w) != nil || l.Kind == submit.ResultEvent {
			return false
		}
	}
	return http.NewResponseController(w).Flush() == nil
}

// shownJob handles an acknowledgement: the user has received all lines up to a number.
func (c *control) shownJob(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.ParseUint(r.URL.Query().Get("number"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("number: %w", err))
		return
	}
	h, err := c.find(r.PathValue("id"))
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	h.audience.acknowledge(number)
	w.WriteHeader(http.StatusNoContent)
}

// cancelJob handles a request to cancel a job.
func (c *control) cancelJob(w http.ResponseWriter, r *http.Request) {
	h, err := c.find(r.PathValue("id"))
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	h.cancel(context.Canceled)
	w.WriteHeader(http.StatusNoContent)
}

// cancelJobs ends all submitted jobs. Jobs without a listener would otherwise wait for an acknowledgement;
// the others end with the peer's life anyway.
func (c *control) cancelJobs() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.handed))
	c.mu.Unlock()
	for _, h := range all {
		h.cancel(errEnding)
	}
}
