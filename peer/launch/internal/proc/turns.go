package proc

import "time"

// Turns are what some processes have had of the processors.
type Turns struct {
	At          time.Time
	Ran, Waited time.Duration // of all their threads
}

// Starved reports whether they have wanted to run ever since before, and hardly could: with what
// they got nobody answers in time.
func (t Turns) Starved(before Turns) bool {
	took := t.At.Sub(before.At)
	return t.Waited-before.Waited > took/2 && t.Ran-before.Ran < took/20
}
