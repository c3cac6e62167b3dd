package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/discovery"
)

// control serves the owner's requests on the control socket. The socket's mode, and the kernel where it
// reports the client's user, authenticate the client.
type control struct {
	peer   *Peer
	server *http.Server
	served sync.WaitGroup

	mu     sync.Mutex
	refuse bool               // true if no new jobs are accepted
	jobs   sync.WaitGroup     // submitted here and not over; Add under mu
	handed map[string]*handed // jobs by ID, once they have one
}

// startControl opens the control socket and the status page.
func (p *Peer) startControl() error {
	if p.role != Volunteer {
		return nil
	}
	c := &control{peer: p, handed: make(map[string]*handed)}
	listener, err := listenUnix(p.life, p.home.socket())
	if err != nil {
		return &HomeError{string(p.home), fmt.Errorf("open control socket: %w", err)}
	}
	c.server = &http.Server{
		Handler:           c.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return p.life },
	}
	p.control = c
	c.served.Go(func() { c.server.Serve(ownersListener{listener}) }) // ends with close
	p.owns("control socket", c.close)
	return p.startPage()
}

// listenUnix listens on a socket that only the owner can connect to. The home's own mode keeps other users
// out until the socket's mode is set.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// An ownersListener accepts connections only from root and from the user that runs this process. It
// protects homes that the owner has made accessible to other users. If the system does not report the
// user, it accepts the connection.
type ownersListener struct{ net.Listener }

// Accept returns the owner's next connection.
func (l ownersListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if user, known := userOf(conn); !known || user == 0 || user == os.Geteuid() {
			return conn, nil
		}
		conn.Close()
	}
}

func (c *control) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range c.calls() {
		mux.HandleFunc(pattern, handle)
	}
	return mux
}

// calls returns the handlers of all requests that the socket accepts. Only the status is also available
// elsewhere.
func (c *control) calls() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /v1/status": func(w http.ResponseWriter, r *http.Request) {
			reply(w, http.StatusOK, c.peer.Status(r.Context()))
		},
		"GET /v1/candidates":        c.candidates,
		"GET /v1/symptoms":          c.symptoms,
		"GET /v1/cache":             c.cache,
		"POST /v1/cache/trim":       c.trimCache,
		"POST /v1/jobs":             c.runJob,
		"POST /v1/jobs/{id}/attach": c.attachJob,
		"POST /v1/jobs/{id}/shown":  c.shownJob,
		"DELETE /v1/jobs/{id}":      c.cancelJob,
		"DELETE /v1/hosted/{id}":    c.stopHosted,
		"POST /v1/slots":            c.resize,
		"POST /v1/halt":             c.halt,
	}
}

// close ends the jobs that were submitted here, and stops serving. The jobs' contexts derive from the
// peer's life, which has ended.
func (c *control) close() error {
	c.refuseJobs()
	ctx, cancel := context.WithTimeout(context.Background(), orderlyTimeout)
	defer cancel()
	c.cancelJobs()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, c.server.Close())
	}
	c.served.Wait()
	if !c.awaitJobs(ctx) {
		err = errors.Join(err, errors.New("jobs that were handed to this peer are not over"))
	}
	return err
}

func (c *control) refuseJobs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = true
}

// awaitJobs returns true when every job submitted here is over, or false when ctx ends.
func (c *control) awaitJobs(ctx context.Context) bool {
	over := make(chan struct{})
	go func() { // ends with the jobs, which end with the peer's life and cancelJobs
		c.jobs.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *control) candidates(w http.ResponseWriter, r *http.Request) {
	var wanted discovery.Filter
	if text := r.URL.Query().Get("filter"); text != "" {
		if err := json.Unmarshal([]byte(text), &wanted); err != nil {
			fail(w, http.StatusBadRequest, fmt.Errorf("filter: %w", err))
			return
		}
	}
	candidates, err := c.peer.submitter.Candidates(r.Context(), wanted)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	reply(w, http.StatusOK, candidates)
}

// resize changes the number of slots.
func (c *control) resize(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err != nil || n < 0 || n > maxSlots {
		fail(w, http.StatusBadRequest, fmt.Errorf("total %.40q: want 0 to %d", r.URL.Query().Get("total"), maxSlots))
		return
	}
	c.peer.resize(n)
	slots, _ := c.peer.slotStatus(nil)
	reply(w, http.StatusOK, slots)
}

// A problem is the body of an answer whose status is not 2xx.
type problem struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, problem{err.Error()})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.Encode(body) // an error means that the client has disconnected
}
