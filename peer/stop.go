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
	id, err := nameIn(p.hostedIDs(), prefix)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q: %w", prefix, err)
	}
	p.log.Info().Str("job", id).Dur("within", within).Msg("stopped by the owner")
	p.slots.Bar(id)
	how, err := p.launcher.Stop(ctx, id, within)
	if err != nil {
		return Stopped{}, fmt.Errorf("job %.80q has yet to go: %w", id, err)
	}
	return Stopped{Job: id, How: how}, nil
}

// hostedIDs are those of the jobs that have slots here, or what waits for their submitters.
func (p *Peer) hostedIDs() (ids []string) {
	for _, j := range p.slots.Snapshot().Jobs {
		ids = append(ids, j.Job)
	}
	for _, j := range p.launcher.Jobs() {
		ids = append(ids, j.Job)
	}
	return ids
}

// nameIn returns that one of some IDs that begins with prefix, or is it.
func nameIn(ids []string, prefix string) (string, error) {
	if slices.Contains(ids, prefix) {
		return prefix, nil
	}
	found := ""
	for _, id := range ids {
		switch {
		case prefix == "" || !strings.HasPrefix(id, prefix):
		case found == "" || found == id:
			found = id
		default:
			return "", errAmbiguous
		}
	}
	if found == "" {
		return "", errNotHosted
	}
	return found, nil
}
