package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// ErrNoPeer says that no peer runs on a home.
var ErrNoPeer = errors.New("no peer is running")

// A Client talks to a running peer through the control socket of its home.
type Client struct {
	home string
	http *http.Client
}

// Dial returns a client of the peer that runs on the home dir. The error wraps
// ErrNoPeer when there is none. Close it after use.
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
		return nil, fmt.Errorf("%w on home %s (%w)", ErrNoPeer, abs, plainDialError(err))
	}
	conn.Close()
	return &Client{abs, &http.Client{Transport: &http.Transport{DialContext: connect}}}, nil
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

// Candidates returns the peers that offer slots and that the peer finds now.
func (c *Client) Candidates(ctx context.Context) (found []job.Candidate, err error) {
	return found, c.call(ctx, http.MethodGet, "/v1/candidates", &found)
}

// Halt asks the peer to end and returns when it has gone.
func (c *Client) Halt(ctx context.Context, how Halt) error {
	if err := c.call(ctx, http.MethodPost, "/v1/halt?mode="+string(how), nil); err != nil {
		return err
	}
	return AwaitGone(ctx, c.home)
}

// maxEvent bounds a line of a job's event stream: 64 KiB of output in base64
// and its surroundings, or the placement or view of the largest job.
const maxEvent = 16 << 20

// Run has the peer run a job, and tells emit of its events, but not of the
// last: that is the result. When ctx ends the job is cancelled; Run then returns
// without waiting for its end.
func (c *Client) Run(ctx context.Context, req job.Request, emit func(job.Event) error) (job.Result, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return job.Result{}, fmt.Errorf("submit job: %w", err)
	}
	resp, err := c.do(ctx, http.MethodPost, "/v1/jobs", bytes.NewReader(body))
	if err != nil {
		return job.Result{}, fmt.Errorf("submit job: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e job.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return job.Result{}, fmt.Errorf("read job's events: %w", err)
		}
		if e.Kind == job.ResultEvent && e.Result != nil {
			return *e.Result, nil
		}
		if err := emit(e); err != nil {
			return job.Result{}, err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() != nil {
		return job.Result{}, ctx.Err()
	}
	return job.Result{}, fmt.Errorf("the peer on home %s ended before the job did", c.home)
}

// call makes a request without a body and decodes the answer into out.
func (c *Client) call(ctx context.Context, method, path string, out any) error {
	resp, err := c.do(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
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
		return nil, fmt.Errorf("ask the peer on home %s: %s", c.home, resp.Status)
	}
	return nil, fmt.Errorf("the peer on home %s: %s", c.home, p.Error)
}
