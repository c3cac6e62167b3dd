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

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// maxRequest bounds the body of a request. A job with 200,000 input files fits.
const maxRequest = 64 << 20

// errEnds says that no job is taken any more.
var errEnds = errors.New("the peer is about to end and takes no more jobs")

// runJob runs a job and speaks to who has submitted it.
func (c *control) runJob(w http.ResponseWriter, r *http.Request) {
	var req job.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("read job: %w", err))
		return
	}
	h, err := c.hand("", req.Away, nil, func(ctx context.Context, sink job.Sink) { c.peer.submitter.Run(ctx, req, sink) })
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	c.speak(w, r, h)
}

// attachJob speaks to who asks for a job to which nobody listens, or goes on with one that
// a peer of this home was killed with.
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
		h, err = c.hand(id, kept.Request.Away, why, func(ctx context.Context, sink job.Sink) { c.peer.submitter.Attach(ctx, id, sink) })
	}
	if err != nil {
		fail(w, http.StatusConflict, fmt.Errorf("job %s: %w", id, err))
		return
	}
	c.speak(w, r, h)
}

// hand begins to follow a job as run does, which somebody listens to. Of one with an ID
// that begins with that it is known that it is kept. With why the job is cancelled before run.
func (c *control) hand(id string, away time.Duration, why error, run func(context.Context, job.Sink)) (*handed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refuse:
		return nil, errEnds
	case c.handed[id] != nil:
		return nil, errListened // who was faster
	}
	ctx, end := context.WithCancelCause(c.peer.life)
	h := &handed{audience: newAudience(), end: end, over: make(chan struct{}), away: away, kept: id != "", listened: true}
	if id != "" {
		c.handed[id] = h
	}
	if why != nil {
		h.cancel(why)
	}
	c.jobs.Go(func() { // ends with the job, which ends with the peer's life, or with cancelJobs when only its result waits
		run(ctx, func(e job.Event, done func(error)) {
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

// name makes a job known by its ID.
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

// unheard returns since when nobody listens to a job; zero: somebody does. A nil control
// has no jobs.
func (c *control) unheard(id string) time.Time {
	if c == nil {
		return time.Time{}
	}
	if h, err := c.find(id); err == nil {
		return h.unheard()
	}
	return time.Time{}
}

// speak tells who asks what the job says, a line each (see line), until the result is told or the
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
			gone = nil // the listener may hear how the job ends that is cancelled now
		case <-h.over:
			return
		}
	}
}

// write sends lines, and reports whether there may be more.
func write(w http.ResponseWriter, lines []line) bool {
	if id := lines[0].Job; id != "" {
		w.Header().Set("Location", "/v1/jobs/"+id) // counts before the first only
	}
	for _, l := range lines {
		if l.write(w) != nil || l.Kind == job.ResultEvent {
			return false
		}
	}
	return http.NewResponseController(w).Flush() == nil
}

// shownJob takes the word of who listens that the user has what was told up to a number.
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

// cancelJob ends a job.
func (c *control) cancelJob(w http.ResponseWriter, r *http.Request) {
	h, err := c.find(r.PathValue("id"))
	if err != nil {
		fail(w, http.StatusNotFound, err)
		return
	}
	h.cancel(context.Canceled)
	w.WriteHeader(http.StatusNoContent)
}

// cancelJobs ends those to which nobody listens, who would have to hear of the end: that
// of the others comes with the end of the peer's life.
func (c *control) cancelJobs() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.handed))
	c.mu.Unlock()
	for _, h := range all {
		h.cancel(errEnding)
	}
}
