//go:build race

package replication

// With the race detector a schedule takes six times as long, and a core without goroutines has few races to find.
const (
	defaultSchedules = 5000
	defaultStates    = 3000
)
