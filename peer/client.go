package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// ErrNoPeer says that no peer runs on a home.
var ErrNoPeer = errors.New("no peer is running")

// ErrNotAllowed says that the peer on a home, if one runs there, takes no requests of this user.
var ErrNotAllowed = errors.New("only the user that runs the peer, or root, may ask it")

// A Client talks to a running peer through the control socket of its home.
type Client struct {
	home string
	http *http.Client
}

// Dial returns a client of the peer that runs on the home dir. The error wraps
// ErrNoPeer when there is none, or ErrNotAllowed when the home is another user's; it is a *HomeError when the
// home cannot be used. Close it after use.
func Dial(ctx context.Context, dir string) (*Client, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &HomeError{dir, err}
	}
	socket := home(abs).socket()
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	conn, err := connect(ctx, "", "")
	if err != nil {
		return nil, dialError(abs, plainDialError(err))
	}
	conn.Close()
	return &Client{abs, &http.Client{Transport: &http.Transport{DialContext: connect, ReadBufferSize: readAhead}}}, nil
}

// dialError says why the control socket of a home could not be connected to.
func dialError(home string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &HomeError{home, fmt.Errorf("%w (%w)", ErrNotAllowed, err)}
	case errors.Is(err, syscall.ENOTDIR):
		return &HomeError{home, fmt.Errorf("%w (%w)", ErrNoPeer, err)}
	}
	return fmt.Errorf("%w on home %s (%w)", ErrNoPeer, home, err)
}

func plainDialError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the state of the peer.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/status", &s)
}

// Candidates returns the peers that are wanted, offer slots and are found by the peer now.
func (c *Client) Candidates(ctx context.Context, wanted discovery.Filter) (found []job.Candidate, err error) {
	filter, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("look for peers: %w", err)
	}
	return found, c.call(ctx, http.MethodGet, "/v1/candidates?filter="+url.QueryEscape(string(filter)), &found)
}

// Halt asks the peer to end, and returns what becomes of its jobs. AwaitGone waits for the end.
func (c *Client) Halt(ctx context.Context, how Halt) (h Halting, err error) {
	return h, c.call(ctx, http.MethodPost, "/v1/halt?mode="+string(how), &h)
}

// Resize changes how many slots the peer has until it ends.
func (c *Client) Resize(ctx context.Context, slots int) (s Slots, err error) {
	return s, c.call(ctx, http.MethodPost, fmt.Sprintf("/v1/slots?total=%d", slots), &s)
}

// Stop has a job be gone from the peer, by the beginning of its ID: handed over where that can be, unless now,
// or else ended. It returns when that is done. The error wraps a *RefusedError if there is no such job, or several.
func (c *Client) Stop(ctx context.Context, id string, now bool) (s Stopped, err error) {
	return s, c.call(ctx, http.MethodDelete, fmt.Sprintf("/v1/hosted/%s?now=%t", url.PathEscape(id), now), &s)
}

// Run has the peer run a job, and tells emit of its events, but not of the
// last: that is the result. When ctx ends the job is cancelled; Run then returns
// without waiting for its end.
//
// Should the peer be killed, while the job can go on without it, Run waits for another to be
// booted on the home, for as long as the job may be away, and follows the job there. The
// error wraps a *LeftError when that was in vain, or ctx ends meanwhile.
func (c *Client) Run(ctx context.Context, req job.Request, emit func(job.Event) error) (job.Result, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return job.Result{}, fmt.Errorf("submit job: %w", err)
	}
	l := &listener{client: c, emit: emit, away: req.Away, shown: make(map[source]uint64)}
	return l.follow(ctx, func(ctx context.Context) (*http.Response, error) {
		resp, err := c.do(ctx, http.MethodPost, "/v1/jobs", bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("submit job: %w", err)
		}
		return resp, nil
	})
}

// Attach goes on with a job that was handed to a peer of this home, as Run does, when nobody
// listens to it any more. With cancel it ends the job and waits until that is done. The error wraps a
// *RefusedError if there is no such job, or another listens.
func (c *Client) Attach(ctx context.Context, kept job.Kept, cancel bool, emit func(job.Event) error) (job.Result, error) {
	l := &listener{client: c, emit: emit, away: kept.Request.Away, id: kept.Job, kept: !cancel, shown: make(map[source]uint64)}
	return l.follow(ctx, func(ctx context.Context) (*http.Response, error) { return c.attach(ctx, kept.Job, cancel) })
}

func (c *Client) attach(ctx context.Context, id string, cancel bool) (*http.Response, error) {
	return c.do(ctx, http.MethodPost, fmt.Sprintf("/v1/jobs/%s/attach?cancel=%t", id, cancel), nil)
}

// acknowledge says that the user has all that was told up to a number. Should it be lost,
// that comes again, or the end of the connection does.
func (c *Client) acknowledge(ctx context.Context, id string, number uint64) {
	if id != "" && number > 0 {
		_ = c.call(ctx, http.MethodPost, fmt.Sprintf("/v1/jobs/%s/shown?number=%d", id, number), nil)
	}
}

// cancelTimeout bounds how long a peer is tried to be told that a job is cancelled.
const cancelTimeout = 5 * time.Second

// cancel ends a job, also when ctx has ended. One that cannot be told ends later.
func (c *Client) cancel(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	if id != "" {
		_ = c.call(ctx, http.MethodDelete, "/v1/jobs/"+id, nil)
	}
}

// call makes a request without a body and decodes the answer into out.
func (c *Client) call(ctx context.Context, method, path string, out any) error {
	resp, err := c.do(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, resp.Body) // so that the connection can be used again
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s of the peer on home %s: %w", path, c.home, err)
	}
	return nil
}

// do makes a request; any answer but 2xx is an error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://p2pmpi"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the peer on home %s: %w", c.home, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	var p problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Error == "" {
		p.Error = resp.Status
	}
	return nil, &RefusedError{c.home, p.Error}
}

// A RefusedError says that the peer on a home does not do what it was asked for.
type RefusedError struct {
	Home   string
	Reason string
}

// Error names the home and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the peer on home %s: %s", e.Home, e.Reason)
}
