package control

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// CacheOf returns the contents of the cache of the home dir, on which no peer runs. The error is a
// *homedir.Error or a *homedir.RunningError.
func CacheOf(dir string) (c status.Cache, err error) {
	c = status.Cache{Home: dir, Contents: []filetransfer.Content{}}
	return c, withCache(dir, func(store *filetransfer.Store) error {
		c.Bytes, c.Contents = store.Bytes(), store.Contents()
		return nil
	})
}

// TrimCacheOf does the same as Client.TrimCache for a home on which no peer runs.
func TrimCacheOf(dir string, to int64) (t status.Trimmed, err error) {
	return t, withCache(dir, func(store *filetransfer.Store) error {
		t, err = TrimStore(store, to)
		return err
	})
}

// TrimStore evicts files that no job uses from a store until at most to bytes remain.
func TrimStore(store *filetransfer.Store, to int64) (status.Trimmed, error) {
	freed, err := store.Trim(to)
	if err != nil {
		return status.Trimmed{}, fmt.Errorf("trim the cache: %w", err)
	}
	return status.Trimmed{Freed: freed, Bytes: store.Bytes()}, nil
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
