//go:build race

package job

// raceEnabled reports whether the race detector is on. It makes each state take many times as long,
// and finds little in a core without goroutines.
const raceEnabled = true

// defaultStates is small because the race detector makes an exploration many times slower.
const defaultStates = 2000
