package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strconv"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// A Cache describes the staged files that a peer keeps.
type Cache struct {
	Home     string                 `json:"home"`
	Running  bool                   `json:"running"`         // true if a peer runs on the home
	Bytes    int64                  `json:"bytes"`           // total size
	Limit    int64                  `json:"limit,omitempty"` // in bytes; set if a peer runs
	Contents []filetransfer.Content `json:"contents"`        // most recently used first
}

// Trimmed is the result of trimming a cache.
type Trimmed struct {
	Freed int64 `json:"freed"` // bytes
	Bytes int64 `json:"bytes"` // bytes that remain
}

// Cache returns the contents of the peer's cache.
func (c *Client) Cache(ctx context.Context) (cache Cache, err error) {
	return cache, c.Call(ctx, http.MethodGet, "/v1/cache", &cache)
}

// TrimCache evicts files that no job uses from the peer's cache, the least recently used first, until at
// most the given number of bytes remain.
func (c *Client) TrimCache(ctx context.Context, to int64) (t Trimmed, err error) {
	return t, c.Call(ctx, http.MethodPost, fmt.Sprintf("/v1/cache/trim?to=%d", to), &t)
}

func (q requests) cache(w http.ResponseWriter, _ *http.Request) {
	store := q.peer.files.Store()
	control.Reply(w, http.StatusOK, Cache{
		Home: string(q.peer.home), Running: true, Bytes: store.Bytes(), Limit: store.Limit(), Contents: store.Contents(),
	})
}

func (q requests) trimCache(w http.ResponseWriter, r *http.Request) {
	to, err := strconv.ParseInt(r.URL.Query().Get("to"), 10, 64)
	if err == nil && to < 0 {
		err = errors.New("want 0 or more")
	}
	if err != nil {
		control.Fail(w, http.StatusBadRequest, fmt.Errorf("to: %w", err))
		return
	}
	t, err := trim(q.peer.files.Store(), to)
	if err != nil {
		control.Fail(w, http.StatusInternalServerError, err)
		return
	}
	control.Reply(w, http.StatusOK, t)
}

func trim(store *filetransfer.Store, to int64) (Trimmed, error) {
	freed, err := store.Trim(to)
	if err != nil {
		return Trimmed{}, fmt.Errorf("trim the cache: %w", err)
	}
	return Trimmed{Freed: freed, Bytes: store.Bytes()}, nil
}

// CacheOf returns the contents of the cache of the home dir, on which no peer runs. The error is a
// *homedir.Error or a *homedir.RunningError.
func CacheOf(dir string) (c Cache, err error) {
	c = Cache{Home: dir, Contents: []filetransfer.Content{}}
	return c, withCache(dir, func(store *filetransfer.Store) error {
		c.Bytes, c.Contents = store.Bytes(), store.Contents()
		return nil
	})
}

// TrimCacheOf does the same as Client.TrimCache for a home on which no peer runs.
func TrimCacheOf(dir string, to int64) (t Trimmed, err error) {
	return t, withCache(dir, func(store *filetransfer.Store) error {
		t, err = trim(store, to)
		return err
	})
}

// withCache opens the cache of a home without a limit, so that opening it evicts nothing. If the home has
// no cache, withCache does nothing.
func withCache(dir string, do func(*filetransfer.Store) error) error {
	if _, err := os.Stat(homedir.Dir(dir).Cache()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h, err := homedir.Open(dir)
	if err != nil {
		return err
	}
	lock, err := h.Lock()
	if err != nil {
		return err
	}
	store, err := filetransfer.OpenStore(h.Cache(), math.MaxInt64)
	if err == nil {
		err = do(store)
	}
	if err = errors.Join(err, lock.Release()); err != nil {
		return &homedir.Error{Home: string(h), Err: err}
	}
	return nil
}
