//go:build race

package viewgroup

// The race detector multiplies the time per state, and has little to find in a core without goroutines.
const defaultStates = 40
