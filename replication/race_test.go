//go:build race

package replication

// The race detector makes a schedule six times as slow, and has little to find in a core without
// goroutines.
const (
	defaultSchedules = 5000
	defaultStates    = 3000
)
