package proc

import "time"

// Turns are what some processes have had of the processors.
type Turns struct {
	At          time.Time
	Ran, Waited time.Duration // of all their threads
}

// Lacked returns how long these processes have waited for a processor since before, without running. Time in
// which some of their threads wait while another runs does not count.
func (t Turns) Lacked(before Turns) time.Duration {
	idle := t.At.Sub(before.At) - (t.Ran - before.Ran)
	return max(0, min(idle, t.Waited-before.Waited))
}

// Starved reports whether they have wanted to run ever since before, and hardly could: with what
// they got nobody answers in time.
func (t Turns) Starved(before Turns) bool {
	took := t.At.Sub(before.At)
	return t.Waited-before.Waited > took/2 && t.Ran-before.Ran < took/20
}
