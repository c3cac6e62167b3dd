//go:build race

package viewgroup

// The race detector makes a state many times as long, and has little to find in a
// core without goroutines.
const defaultStates = 40
