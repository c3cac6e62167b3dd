package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Stopped is a job that the owner has stopped.
type Stopped struct {
	Job string           `json:"job"` // full ID
	How launch.Departure `json:"how"`
}

// Errors for a prefix of a job's ID.
var (
	errNotHosted = errors.New("no such job has slots at this peer")
	errAmbiguous = errors.New("several jobs have IDs with this prefix")
)

// stopHosted handles a request to stop a job's part here, and answers when it has ended.
func (q requests) stopHosted(w http.ResponseWriter, r *http.Request) {
	within := handOverTimeout
	if r.URL.Query().Get("now") == "true" {
		within = 0
	}
	stopped, err := q.peer.stopHosted(r.Context(), r.PathValue("id"), within)
	switch {
	case errors.Is(err, errNotHosted):
		control.Fail(w, http.StatusNotFound, err)
	case errors.Is(err, errAmbiguous):
		control.Fail(w, http.StatusConflict, err)
	case err != nil:
		control.Fail(w, http.StatusServiceUnavailable, err)
	default:
		control.Reply(w, http.StatusOK, stopped)
	}
}

// stopHosted removes the job whose ID begins with prefix from this peer. The job gets no more slots here.
// Its processes are handed over if that takes no longer than within, or else ended. If ctx ends first, the
// removal continues.
func (p *Peer) stopHosted(ctx context.Context, prefix string, within time.Duration) (Stopped, error) {
	job, err := selectJob(p.hosted(), prefix)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q: %w", prefix, err)
	}
	p.log.Info().Str("job", job.Job).Stringer("submitter", job.Submitter).Dur("within", within).Msg("stopped by the owner")
	p.slots.Bar(job)
	how, err := p.launcher.Stop(ctx, job.Job, job.Submitter, within)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q has not stopped yet: %w", job.Job, err)
	}
	return Stopped{Job: job.Job, How: how}, nil
}

// hosted returns the launched jobs, followed by the jobs that have slots. A job may occur twice.
func (p *Peer) hosted() (jobs []reservation.Name) {
	for _, j := range p.launcher.Jobs() {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	for _, j := range p.slots.Snapshot().Jobs {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	return jobs
}

// selectJob returns the job whose ID is prefix, or the only one whose ID begins with prefix. If several
// submitters use the same ID, it returns the first, and launched jobs precede those that only hold slots. A
// submitter that reserves slots under another job's ID therefore cannot prevent that job's removal.
func selectJob(jobs []reservation.Name, prefix string) (found reservation.Name, err error) {
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
