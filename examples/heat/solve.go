package main

import "github.com/p2pmpi/p2pmpi/mpj"

// A solution is the state of all ranks at the end.
type solution struct {
	block  *block // block of this rank
	steps  int
	change float64 // greatest change of a point in the last step, in degrees
}

// checkEvery is the number of steps between two checks of the change. At each check, all ranks wait
// for the slowest.
const checkEvery = 10

// solve computes steps until no temperature changes by more than tolerance in a step, but at most
// limit steps. It calls checked at every check.
func (g grid) solve(tolerance float64, limit int, checked func(step int, change float64)) (solution, error) {
	a, err := g.area(g.Rank())
	if err != nil {
		return solution{}, err
	}
	old, next := newBlock(a.rows, a.columns, a.row == 0), newBlock(a.rows, a.columns, a.row == 0)
	requests := make([]*mpj.Request, 0, 8)
	for step := 1; ; step++ {
		if requests, err = g.exchange(old, requests[:0]); err != nil {
			return solution{}, err
		}
		change := next.interior(old)
		if _, err := mpj.Waitall(requests...); err != nil {
			return solution{}, err
		}
		change = max(change, next.border(old))
		old, next = next, old
		if step%checkEvery != 0 && step < limit {
			continue
		}
		// The greatest change at all ranks. All ranks get the same value, and so make the same
		// decision.
		greatest := []float64{change}
		if err := mpj.Allreduce(g.Comm, greatest, greatest, mpj.Max); err != nil {
			return solution{}, err
		}
		checked(step, greatest[0])
		if greatest[0] <= tolerance || step >= limit {
			return solution{old, step, greatest[0]}, nil
		}
	}
}
