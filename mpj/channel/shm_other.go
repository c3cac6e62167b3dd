//go:build !linux

package channel

import (
	"errors"
	"os"
	"sync/atomic"
)

// Shared memory needs memfd and futex of Linux. On other systems no peer offers it.

type memory struct{ bytes []byte }

// NewRing returns an error: there is no shared memory on this system.
func NewRing(int) (*os.File, error) { return nil, errors.ErrUnsupported }

// NewBoard returns an error: there is no shared memory on this system.
func NewBoard(int) (*os.File, error) { return nil, errors.ErrUnsupported }

func openRing(*os.File) (*ring, error)    { return nil, errors.ErrUnsupported }
func mapShared(*os.File) (*memory, error) { return nil, errors.ErrUnsupported }

func futexWait(*atomic.Uint32, uint32) {}
func futexWake(*atomic.Uint32)         {}
