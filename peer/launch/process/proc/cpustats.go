package proc

import "time"

// CPUStats holds the processor time of a set of processes at a point in time.
type CPUStats struct {
	At          time.Time
	Ran, Waited time.Duration // sums over all their threads
}

// WaitSince returns how long the processes have waited for a processor since before, without running. Time in
// which some of their threads wait while another one runs does not count.
func (t CPUStats) WaitSince(before CPUStats) time.Duration {
	idle := t.At.Sub(before.At) - (t.Ran - before.Ran)
	return max(0, min(idle, t.Waited-before.Waited))
}

// Starved reports whether the processes wanted to run since before and hardly could. With so little
// processor time, none can answer in time.
func (t CPUStats) Starved(before CPUStats) bool {
	took := t.At.Sub(before.At)
	return t.Waited-before.Waited > took/2 && t.Ran-before.Ran < took/20
}
