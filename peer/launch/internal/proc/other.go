//go:build !linux

package proc

import "time"

// Inspect finds nothing: what processes have is not to be had portably.
func Inspect([]int, string, bool) (Tree, error) { return Tree{}, nil }

// TouchedBy is not known.
func TouchedBy([]int) int64 { return 0 }

// MemoryOf is not known.
func MemoryOf([]int, bool) Memory { return Memory{} }

// SceneOf sees nobody, so that nobody is stopped.
func SceneOf([]int) Scene { return Scene{} }

// Stop stops nobody.
func (Scene) Stop() {}

// GoOn has nobody go on.
func GoOn([]int) {}

// CPUTime is not known.
func CPUTime([]int) time.Duration { return 0 }

// TurnsOf knows nothing of them, so that nobody is starved.
func TurnsOf(_ []int, now time.Time) Turns { return Turns{At: now} }

// FreeBytes is not known: what is on disk is measured from time to time.
func FreeBytes(string, int64) int64 { return 0 }
