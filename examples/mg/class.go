package main

import "github.com/p2pmpi/p2pmpi/examples/internal/npb"

// A class is a problem size, with the norm of the residual that NPB expects for it.
type class struct {
	log        int // 2^log points along each axis
	iterations int // number of V-cycles
	smoother   stencil
	norm       float64
}

// A stencil contains four weights: for a point, for its 6 nearest neighbours, for the 12 neighbours
// across the edges, and for the 8 neighbours across the corners.
type stencil [4]float64

// laplace is the discrete Laplace operator. NPB omits the term whose weight is zero.
var laplace = stencil{-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}

// The approximate inverses of laplace.
var (
	small = stencil{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0}
	large = stencil{-3.0 / 17, 1.0 / 33, -1.0 / 61, 0}
)

var classes = map[string]class{
	"S": {5, 4, small, 0.5307707005734e-4},
	"W": {7, 4, small, 0.6467329375339e-5},
	"A": {8, 4, small, 0.2433365309069e-5},
	"B": {8, 20, large, 0.1800564401355e-5},
}

const (
	// epsilon is the relative error of the norm that NPB allows.
	epsilon = 1e-8
	// maxRanks ensures that every rank has more points than charges.
	maxRanks = 256
)

func (c class) points() int { return 1 << c.log }

func (c class) verify(norm float64) bool { return npb.Near(norm, c.norm, epsilon) }

// operations returns the floating-point operations of a run as NPB counts them.
func (c class) operations() float64 {
	n := float64(c.points())
	return 58 * float64(c.iterations) * n * n * n
}
