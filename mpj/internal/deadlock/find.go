package deadlock

import (
	"maps"
	"slices"
)

// A State is the state that one rank reports.
type State struct {
	// Ended reports that the rank has finalized, so it sends and receives no more messages.
	Ended bool `json:",omitempty"`
	// Idle reports that every goroutine of the rank is in one of the Waits, or waits for such a
	// goroutine.
	Idle  bool   `json:",omitempty"`
	Waits []Wait `json:",omitempty"`
	// Sent and Received count the frames exchanged with each other rank so far, except frames that
	// contain states.
	Sent, Received map[int]uint64 `json:",omitempty"`
}

// A Wait is a call that waits.
type Wait struct {
	Number uint64 // unique, except that the requests of one Waitany or Waitsome share it
	For    []int  `json:",omitempty"` // each of these ranks may end the wait
	Text   string // description of the call
}

// Find returns, in order, the ranks that have not ended and can never proceed. Its arguments are the
// states of all ranks from two rounds. The second round must begin after the first has ended.
func Find(first, second []State) []int {
	stuck := make([]bool, len(second))
	for i := range stuck {
		stuck[i] = i < len(first) && still(first[i], second[i])
	}
	for again := true; again; {
		again = false
		for i, s := range second {
			if stuck[i] && !s.Ended && released(i, second, stuck) {
				stuck[i], again = false, true
			}
		}
	}
	var found []int
	for i, s := range second {
		if stuck[i] && !s.Ended {
			found = append(found, i)
		}
	}
	return found
}

// still reports whether a rank was idle between two states.
func still(a, b State) bool {
	if a.Ended {
		return b.Ended
	}
	return a.Idle && b.Idle && len(b.Waits) > 0 && maps.Equal(a.Sent, b.Sent) && maps.Equal(a.Received, b.Received) &&
		slices.EqualFunc(a.Waits, b.Waits, func(x, y Wait) bool { return x.Number == y.Number })
}

// released reports whether a rank that rank i waits for proceeds, or has sent a message that has
// not arrived yet. A wait that only rank i itself can end is never released.
func released(i int, states []State, stuck []bool) bool {
	return slices.ContainsFunc(states[i].Waits, func(w Wait) bool {
		return slices.ContainsFunc(w.For, func(j int) bool {
			return j != i && (j < 0 || j >= len(stuck) || !stuck[j] || states[j].Sent[i] != states[i].Received[j])
		})
	})
}
