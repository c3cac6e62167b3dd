//go:build !linux

package channel

import (
	"errors"
	"os"
	"sync/atomic"
)

// Shared memory needs memfd and futex of Linux. On other systems, peers do not offer shared memory.

type memory struct{ bytes []byte }

// NewRing returns an error, because this system has no shared memory.
func NewRing(int) (*os.File, error) { return nil, errors.ErrUnsupported }

// NewBoard returns an error, because this system has no shared memory.
func NewBoard(int) (*os.File, error) { return nil, errors.ErrUnsupported }

func openRing(*os.File) (*ring, error)    { return nil, errors.ErrUnsupported }
func mapShared(*os.File) (*memory, error) { return nil, errors.ErrUnsupported }

func futexWait(*atomic.Uint32, uint32) {}
func futexWake(*atomic.Uint32)         {}
