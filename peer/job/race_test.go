//go:build race

package job

// raceEnabled reports whether the race detector is on. It makes each state take many times as long,
// and finds little in a core without goroutines.
const raceEnabled = true
