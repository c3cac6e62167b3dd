//go:build !linux

package proc

import "time"

// Inspect returns nothing: there is no portable way.
func Inspect([]int, string, bool) (Tree, error) { return Tree{}, nil }

// TouchedBy returns 0, unknown.
func TouchedBy([]int) int64 { return 0 }

// MemoryOf returns the zero Memory, unknown.
func MemoryOf([]int, bool) Memory { return Memory{} }

// Stopped returns none, unknown.
func Stopped([]int) []int { return nil }

// Resume does nothing.
func Resume([]int) {}

// CPUTime returns 0, unknown.
func CPUTime([]int) time.Duration { return 0 }

// CPUTimes returns 0, unknown.
func CPUTimes([]int) (user, system time.Duration) { return 0, 0 }

// CPUTimesOfChildren returns 0, unknown.
func CPUTimesOfChildren(int) (user, system time.Duration) { return 0, 0 }

// CPUStatsOf returns no times, so that no process counts as starved.
func CPUStatsOf(_ []int, now time.Time) CPUStats { return CPUStats{At: now} }

// FreeBytes returns 0, unknown: disk usage is then measured periodically.
func FreeBytes(string, int64) int64 { return 0 }
