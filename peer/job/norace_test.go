//go:build !race

package job

const raceEnabled = false

// defaultStates is the default maximum number of states to explore in each scenario of a job.
const defaultStates = 20000
