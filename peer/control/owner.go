package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// ErrNoPeer means that no peer runs on a home.
var ErrNoPeer = errors.New("no peer is running")

// ErrNotAllowed means that the peer on a home, if one runs there, does not accept requests from this user.
var ErrNotAllowed = errors.New("only root and the user that runs the peer may use its control socket")

// Dial returns a client of the peer that runs on the home dir. Close it after use. The error wraps ErrNoPeer if
// no peer runs there, or ErrNotAllowed if the home belongs to another user. The error is a *homedir.Error if the
// home cannot be used.
func Dial(ctx context.Context, dir string) (*Client, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &homedir.Error{Home: dir, Err: err}
	}
	client, err := dialSocket(ctx, abs, homedir.Dir(abs).Socket())
	if err != nil {
		return nil, dialError(abs, err)
	}
	return client, nil
}

// dialError explains a failed connection to the control socket of a home.
func dialError(home string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &homedir.Error{Home: home, Err: fmt.Errorf("%w (%w)", ErrNotAllowed, err)}
	case errors.Is(err, syscall.ENOTDIR):
		return &homedir.Error{Home: home, Err: fmt.Errorf("%w (%w)", ErrNoPeer, err)}
	}
	return fmt.Errorf("%w on home %s (%w)", ErrNoPeer, home, err)
}

// Status returns the peer's state.
func (c *Client) Status(ctx context.Context) (s status.Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/status", &s)
}

// Candidates returns the peers that offer slots, match wanted, and are found by the peer now.
func (c *Client) Candidates(ctx context.Context, wanted discovery.Filter) (found []submit.Candidate, err error) {
	filter, err := json.Marshal(wanted)
	if err != nil {
		return nil, fmt.Errorf("look for peers: %w", err)
	}
	return found, c.call(ctx, http.MethodGet, "/v1/candidates?filter="+url.QueryEscape(string(filter)), &found)
}

// Examine returns the facts about the peer and its machine for p2pboot doctor. It takes some seconds.
func (c *Client) Examine(ctx context.Context) (f doctor.Facts, err error) {
	return f, c.call(ctx, http.MethodGet, "/v1/symptoms", &f)
}

// Halt asks the peer to end, and returns the fate of each of its jobs. homedir.AwaitGone waits until the
// peer has ended.
func (c *Client) Halt(ctx context.Context, how status.Halt) (h status.Halting, err error) {
	return h, c.call(ctx, http.MethodPost, "/v1/halt?mode="+string(how), &h)
}

// Resize changes the peer's number of slots until the peer ends.
func (c *Client) Resize(ctx context.Context, slots int) (s status.Slots, err error) {
	return s, c.call(ctx, http.MethodPost, fmt.Sprintf("/v1/slots?total=%d", slots), &s)
}

// Stop removes a job from the peer and returns when that is done. It identifies the job by a prefix of its
// ID. Unless now is set, the peer hands the job over if possible. Otherwise it ends the job. The error wraps a
// *RefusedError if no job, or more than one job, matches.
func (c *Client) Stop(ctx context.Context, id string, now bool) (s status.Stopped, err error) {
	return s, c.call(ctx, http.MethodDelete, fmt.Sprintf("/v1/hosted/%s?now=%t", url.PathEscape(id), now), &s)
}

// Cache returns the contents of the peer's cache.
func (c *Client) Cache(ctx context.Context) (cache status.Cache, err error) {
	return cache, c.call(ctx, http.MethodGet, "/v1/cache", &cache)
}

// TrimCache evicts files that no job uses from the peer's cache, the least recently used first, until at
// most the given number of bytes remain.
func (c *Client) TrimCache(ctx context.Context, to int64) (t status.Trimmed, err error) {
	return t, c.call(ctx, http.MethodPost, fmt.Sprintf("/v1/cache/trim?to=%d", to), &t)
}
