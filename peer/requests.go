package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// requests answers the owner's requests on the control socket, except those about submitted jobs.
type requests struct{ peer *Peer }

// startControl opens the control socket and the status page.
func (p *Peer) startControl() error {
	if p.role != Volunteer {
		return nil
	}
	p.jobs = control.NewJobs(p.life, p.submitter)
	server, err := control.Serve(p.life, p.home.Socket(), p.handlers())
	if err != nil {
		return &homedir.Error{Home: string(p.home), Err: fmt.Errorf("open control socket: %w", err)}
	}
	p.owns("control socket", func() error {
		p.jobs.Refuse()
		ctx, cancel := context.WithTimeout(context.Background(), orderlyTimeout)
		defer cancel()
		p.jobs.Cancel(errEnding) // their contexts derive from the peer's life, which has ended
		err := server.Close(ctx)
		if !p.jobs.Await(ctx) {
			err = errors.Join(err, errors.New("jobs that were handed to this peer are not over"))
		}
		return err
	})
	return p.startPage()
}

// handlers returns the handlers of all requests that the socket accepts, by pattern.
func (p *Peer) handlers() map[string]http.HandlerFunc {
	all := p.jobs.Handlers()
	maps.Copy(all, requests{p}.calls())
	return all
}

// calls returns the handlers by pattern. Only the status is also available elsewhere.
func (q requests) calls() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /v1/status": func(w http.ResponseWriter, r *http.Request) {
			control.Reply(w, http.StatusOK, q.peer.Status(r.Context()))
		},
		"GET /v1/candidates":     q.candidates,
		"GET /v1/symptoms":       q.diagnostics,
		"GET /v1/cache":          q.cache,
		"POST /v1/cache/trim":    q.trimCache,
		"DELETE /v1/hosted/{id}": q.stopHosted,
		"POST /v1/slots":         q.resize,
		"POST /v1/halt":          q.halt,
	}
}

func (q requests) candidates(w http.ResponseWriter, r *http.Request) {
	var wanted discovery.Filter
	if text := r.URL.Query().Get("filter"); text != "" {
		if err := json.Unmarshal([]byte(text), &wanted); err != nil {
			control.Fail(w, http.StatusBadRequest, fmt.Errorf("filter: %w", err))
			return
		}
	}
	candidates, err := q.peer.submitter.Candidates(r.Context(), wanted)
	if err != nil {
		control.Fail(w, http.StatusServiceUnavailable, err)
		return
	}
	control.Reply(w, http.StatusOK, candidates)
}

// resize changes the number of slots.
func (q requests) resize(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err != nil || n < 0 || n > maxSlots {
		control.Fail(w, http.StatusBadRequest, fmt.Errorf("total %.40q: want 0 to %d", r.URL.Query().Get("total"), maxSlots))
		return
	}
	q.peer.resize(n)
	slots, _ := q.peer.slotStatus(nil)
	control.Reply(w, http.StatusOK, slots)
}
