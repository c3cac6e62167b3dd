package main

import "github.com/p2pmpi/p2pmpi/examples/internal/npb"

// A class is a problem size, with the eigenvalue estimate that NPB expects for it.
type class struct {
	order      int     // rows of the matrix
	nonzeros   int     // in each of the vectors that generate the matrix
	iterations int     // number of inverse iterations
	shift      float64 // lambda in NPB's definition
	zeta       float64
}

var classes = map[string]class{
	"S": {1400, 7, 15, 10, 8.5971775078648},
	"W": {7000, 8, 15, 12, 10.362595087124},
	"A": {14000, 11, 15, 20, 17.130235054029},
	"B": {75000, 13, 75, 60, 22.712745482631},
}

const (
	// epsilon is the relative error of zeta that NPB allows.
	epsilon = 1e-10
	// steps is the number of steps of the conjugate gradient method.
	steps = 25
	// condition is the reciprocal of the matrix's condition number.
	condition = 0.1
	// maxRanks bounds the number of ranks, so that the blocks of the matrix do not become too
	// small.
	maxRanks = 256
)

func (c class) verify(zeta float64) bool { return npb.Near(zeta, c.zeta, epsilon) }

// operations returns the floating-point operations of a run as NPB counts them.
func (c class) operations() float64 {
	entries := float64(c.nonzeros * (c.nonzeros + 1))
	return float64(2*c.iterations*c.order) * (3 + entries + steps*(5+entries) + 3)
}
