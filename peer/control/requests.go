package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// A Peer is a running peer, as its owner sees and controls it.
type Peer interface {
	Status(ctx context.Context) status.Status
	// Candidates returns the peers that offer slots and match the filter.
	Candidates(ctx context.Context, wanted discovery.Filter) ([]submit.Candidate, error)
	// Examine returns the facts for p2pboot doctor.
	Examine(ctx context.Context) doctor.Facts

	Cache() status.Cache
	// TrimCache evicts files that no job uses until at most to bytes remain.
	TrimCache(to int64) (status.Trimmed, error)

	// Stop removes the job whose ID begins with prefix from the peer: at once if now is set, otherwise it
	// tries to hand the job over. The error wraps ErrNotHosted or ErrAmbiguous if no job, or more than one
	// job, matches.
	Stop(ctx context.Context, prefix string, now bool) (status.Stopped, error)
	// Resize changes the number of slots until the peer ends.
	Resize(slots int) status.Slots

	// Fates returns what happens to each current job if the peer is halted.
	Fates(how status.Halt) status.Halting
	Halt(how status.Halt)
}

// Errors of Peer.Stop for a prefix of a job's ID.
var (
	ErrNotHosted = errors.New("no such job has slots at this peer")
	ErrAmbiguous = errors.New("several jobs have IDs with this prefix")
)

// requests answers the owner's requests, except those about submitted jobs.
type requests struct{ peer Peer }

// Requests returns the handlers of the owner's requests to a peer, by pattern, except those about submitted
// jobs.
func Requests(peer Peer) map[string]http.HandlerFunc {
	q := requests{peer}
	return map[string]http.HandlerFunc{
		"GET /v1/status":         q.status,
		"GET /v1/candidates":     q.candidates,
		"GET /v1/symptoms":       q.examine,
		"GET /v1/cache":          q.cache,
		"POST /v1/cache/trim":    q.trimCache,
		"DELETE /v1/hosted/{id}": q.stop,
		"POST /v1/slots":         q.resize,
		"POST /v1/halt":          q.halt,
	}
}

// status is the only request that the status page answers too.
func (q requests) status(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, q.peer.Status(r.Context()))
}

func (q requests) candidates(w http.ResponseWriter, r *http.Request) {
	var wanted discovery.Filter
	if text := r.URL.Query().Get("filter"); text != "" {
		if err := json.Unmarshal([]byte(text), &wanted); err != nil {
			fail(w, http.StatusBadRequest, fmt.Errorf("filter: %w", err))
			return
		}
	}
	candidates, err := q.peer.Candidates(r.Context(), wanted)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	reply(w, http.StatusOK, candidates)
}

func (q requests) examine(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, q.peer.Examine(r.Context()))
}

func (q requests) cache(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, q.peer.Cache())
}

func (q requests) trimCache(w http.ResponseWriter, r *http.Request) {
	to, err := strconv.ParseInt(r.URL.Query().Get("to"), 10, 64)
	if err == nil && to < 0 {
		err = errors.New("want 0 or more")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("to: %w", err))
		return
	}
	t, err := q.peer.TrimCache(to)
	if err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, http.StatusOK, t)
}

// stop answers when the job's part here has ended.
func (q requests) stop(w http.ResponseWriter, r *http.Request) {
	stopped, err := q.peer.Stop(r.Context(), r.PathValue("id"), r.URL.Query().Get("now") == "true")
	switch {
	case errors.Is(err, ErrNotHosted):
		fail(w, http.StatusNotFound, err)
	case errors.Is(err, ErrAmbiguous):
		fail(w, http.StatusConflict, err)
	case err != nil:
		fail(w, http.StatusServiceUnavailable, err)
	default:
		reply(w, http.StatusOK, stopped)
	}
}

func (q requests) resize(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err != nil || n < 0 || n > policy.MaxSlots {
		fail(w, http.StatusBadRequest, fmt.Errorf("total %.40q: want 0 to %d", r.URL.Query().Get("total"), policy.MaxSlots))
		return
	}
	reply(w, http.StatusOK, q.peer.Resize(n))
}

// halt answers with the fates of the jobs before it halts the peer, so that the client receives the answer.
func (q requests) halt(w http.ResponseWriter, r *http.Request) {
	how := status.Halt(r.URL.Query().Get("mode"))
	switch how {
	case "":
		how = status.Orderly
	case status.Orderly, status.Drain, status.Now:
	default:
		fail(w, http.StatusBadRequest, fmt.Errorf("mode %.40q: want orderly, drain or now", how))
		return
	}
	reply(w, http.StatusAccepted, q.peer.Fates(how))
	q.peer.Halt(how)
}
