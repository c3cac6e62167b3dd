//go:build !linux

package proc

import "time"

// Inspect returns nothing: there is no portable way.
func Inspect([]int, string, bool) (Tree, error) { return Tree{}, nil }

// TouchedBy returns 0, unknown.
func TouchedBy([]int) int64 { return 0 }

// MemoryOf returns the zero Memory, unknown.
func MemoryOf([]int, bool) Memory { return Memory{} }

// SceneOf returns an empty scene, so that no process is stopped.
func SceneOf([]int) Scene { return Scene{} }

// Stop does nothing.
func (Scene) Stop() {}

// Resume does nothing.
func Resume([]int) {}

// CPUTime returns 0, unknown.
func CPUTime([]int) time.Duration { return 0 }

// TurnsOf returns no times, so that no process counts as starved.
func TurnsOf(_ []int, now time.Time) Turns { return Turns{At: now} }

// FreeBytes returns 0, unknown: disk usage is then measured periodically.
func FreeBytes(string, int64) int64 { return 0 }
