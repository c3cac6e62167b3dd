package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Stopped is a job that the owner has stopped.
type Stopped struct {
	Job string           `json:"job"` // all of its ID
	How launch.Departure `json:"how"`
}

// The owner names a job by the beginning of its ID.
var (
	errNotHosted = errors.New("no such job has slots here")
	errAmbiguous = errors.New("several jobs here have IDs that begin so")
)

// stopHosted ends a job's part here, and answers when it has gone.
func (c *control) stopHosted(w http.ResponseWriter, r *http.Request) {
	within := handOverTimeout
	if r.URL.Query().Get("now") == "true" {
		within = 0
	}
	stopped, err := c.peer.stopHosted(r.Context(), r.PathValue("id"), within)
	switch {
	case errors.Is(err, errNotHosted):
		fail(w, http.StatusNotFound, err)
	case errors.Is(err, errAmbiguous):
		fail(w, http.StatusConflict, err)
	case err != nil:
		fail(w, http.StatusServiceUnavailable, err)
	default:
		reply(w, http.StatusOK, stopped)
	}
}

// stopHosted ends the part here of the job whose ID begins so: it gets no slots here any more, and what
// runs is handed over, if that can be within so long, or ended. When ctx ends before, it goes all the same.
func (p *Peer) stopHosted(ctx context.Context, prefix string, within time.Duration) (Stopped, error) {
	job, err := nameIn(p.hosted(), prefix)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q: %w", prefix, err)
	}
	p.log.Info().Str("job", job.Job).Stringer("submitter", job.Submitter).Dur("within", within).Msg("stopped by the owner")
	p.slots.Bar(job)
	how, err := p.launcher.Stop(ctx, job.Job, job.Submitter, within)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q has yet to go: %w", job.Job, err)
	}
	return Stopped{Job: job.Job, How: how}, nil
}

// hosted are the jobs that are here, or what of them waits for their submitters; then those that have slots.
func (p *Peer) hosted() (jobs []reservation.Name) {
	for _, j := range p.launcher.Jobs() {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	for _, j := range p.slots.Snapshot().Jobs {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	return jobs
}

// nameIn returns that one of some jobs whose ID begins with prefix, or is it. Of several submitters' under one ID it
// is the first: what is here is of one of them, and who only has slots is no hindrance to stopping that.
func nameIn(jobs []reservation.Name, prefix string) (found reservation.Name, err error) {
	if i := slices.IndexFunc(jobs, func(n reservation.Name) bool { return n.Job == prefix }); i >= 0 {
		return jobs[i], nil
	}
	for _, n := range jobs {
		switch {
		case prefix == "" || !strings.HasPrefix(n.Job, prefix) || found.Job == n.Job:
		case found.Job == "":
			found = n
		default:
			return reservation.Name{}, errAmbiguous
		}
	}
	if found.Job == "" {
		return reservation.Name{}, errNotHosted
	}
	return found, nil
}
