//go:build race

package job

// The race detector makes a state many times as long, and has little to find in a core
// without goroutines.
const raceEnabled = true
