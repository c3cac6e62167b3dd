package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A Client sends requests to a running peer through its control socket.
type Client struct {
	home string
	http *http.Client
}

// dialSocket returns a client of the peer that runs on the given home. The error is that of the attempt to
// connect to the socket.
func dialSocket(ctx context.Context, home, socket string) (*Client, error) {
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	conn, err := connect(ctx, "", "")
	if err != nil {
		return nil, plainDialError(err)
	}
	conn.Close()
	return &Client{home, &http.Client{Transport: &http.Transport{DialContext: connect, ReadBufferSize: readAhead}}}, nil
}

func plainDialError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// Close closes the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Run submits a job to the peer and passes its events to emit, except the last, which is the result. When
// ctx ends, Run cancels the job and returns without waiting for its end.
//
// If the peer is killed and the job can continue without it, Run waits for another peer to start on the
// home and follows the job there. Run waits at most for the request's Away. The error wraps a
// *LeftError if no peer has started in that time, or ctx has ended before.
func (c *Client) Run(ctx context.Context, req submit.Request, emit func(submit.Event) error) (job.Result, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return job.Result{}, fmt.Errorf("submit job: %w", err)
	}
	l := &listener{client: c, emit: emit, away: req.Away, shown: make(map[job.Source]uint64)}
	return l.follow(ctx, func(ctx context.Context) (*http.Response, error) {
		resp, err := c.do(ctx, http.MethodPost, "/v1/jobs", bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("submit job: %w", err)
		}
		return resp, nil
	})
}

// Attach resumes a job that was submitted through a peer of this home and has no listener, and follows it
// like Run. If cancel is set, it ends the job and waits until that is done. The error wraps a *RefusedError
// if there is no such job, or another client listens to it.
func (c *Client) Attach(ctx context.Context, kept submit.Kept, cancel bool, emit func(submit.Event) error) (job.Result, error) {
	l := &listener{client: c, emit: emit, away: kept.Request.Away, id: kept.Job, kept: !cancel, shown: make(map[job.Source]uint64)}
	return l.follow(ctx, func(ctx context.Context) (*http.Response, error) { return c.attach(ctx, kept.Job, cancel) })
}

func (c *Client) attach(ctx context.Context, id string, cancel bool) (*http.Response, error) {
	return c.do(ctx, http.MethodPost, fmt.Sprintf("/v1/jobs/%s/attach?cancel=%t", id, cancel), nil)
}

// acknowledge reports that the user has received all events up to a number. If the request is lost, those events
// are sent again, or the connection ends.
func (c *Client) acknowledge(ctx context.Context, id string, number uint64) {
	if id != "" && number > 0 {
		_ = c.call(ctx, http.MethodPost, fmt.Sprintf("/v1/jobs/%s/shown?number=%d", id, number), nil)
	}
}

// cancelTimeout bounds the attempt to tell a peer that a job is cancelled.
const cancelTimeout = 5 * time.Second

// cancel ends a job, even if ctx has ended. If the peer cannot be told, the job ends later.
func (c *Client) cancel(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	if id != "" {
		_ = c.call(ctx, http.MethodDelete, "/v1/jobs/"+id, nil)
	}
}

// call sends a request without a body and decodes the answer into out, unless out is nil.
func (c *Client) call(ctx context.Context, method, path string, out any) error {
	resp, err := c.do(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, resp.Body) // allows the connection to be reused
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s of the peer on home %s: %w", path, c.home, err)
	}
	return nil
}

// do sends a request; an answer with a status other than 2xx is an error.
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

// A RefusedError means that the peer on a home has refused a request.
type RefusedError struct {
	Home   string
	Reason string
}

// Error names the home and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the peer on home %s: %s", e.Home, e.Reason)
}
