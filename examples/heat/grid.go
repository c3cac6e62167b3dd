package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A grid is the division of the plate among the ranks.
type grid struct {
	*mpj.Comm // Cartesian

	side                  int   // length of a side of the plate, in points
	dims                  []int // number of rows and columns of ranks
	up, down, left, right int   // neighbours, or ProcNull at the edge of the plate
}

func newGrid(world *mpj.Comm, side int) (g grid, err error) {
	g.side, g.dims = side, make([]int, 2)
	if err := mpj.DimsCreate(world.Size(), g.dims); err != nil {
		return g, err
	}
	if side < g.dims[0] {
		return g, fmt.Errorf("%w: a plate of %d points a side is too small for %d x %d ranks", errUsage, side, g.dims[0], g.dims[1])
	}
	// Allow reordering of the ranks, so that neighbours are on nearby machines.
	if g.Comm, err = world.CartCreate(g.dims, []bool{false, false}, true); err != nil {
		return g, err
	}
	if g.up, g.down, err = g.CartShift(0, 1); err != nil {
		return g, err
	}
	g.left, g.right, err = g.CartShift(1, 1)
	return g, err
}

// An area is the position and size of a rank's block in the plate.
type area struct{ row, column, rows, columns int }

// area returns the area of a rank's block.
func (g grid) area(rank int) (area, error) {
	coords, err := g.CartCoords(rank)
	if err != nil {
		return area{}, err
	}
	top, bottom := share(g.side, coords[0], g.dims[0])
	left, right := share(g.side, coords[1], g.dims[1])
	return area{top, left, bottom - top, right - left}, nil
}

// share returns the range of the n rows or columns that belong to part i: from is included, and to
// is not. The lengths of shares differ by at most one.
func share(n, i, parts int) (from, to int) {
	start := func(i int) int { return i*(n/parts) + min(i, n%parts) }
	return start(i), start(i + 1)
}

// The tags of this program's messages.
const (
	haloTag = iota + 1
	plateTag
)

// exchange starts to receive the halo of b from the neighbours and to send the border of b to them.
// Until all requests are complete, the halo must not be read and the border must not be written.
// Messages to and from ProcNull have no effect.
func (g grid) exchange(b *block, requests []*mpj.Request) ([]*mpj.Request, error) {
	var first error
	start := func(r *mpj.Request, err error) {
		requests = append(requests, r)
		if first == nil {
			first = err
		}
	}
	start(mpj.Irecv(g.Comm, b.row(0), g.up, haloTag))
	start(mpj.Irecv(g.Comm, b.row(b.rows+1), g.down, haloTag))
	start(mpj.IrecvTyped(g.Comm, b.col(0), g.left, haloTag))
	start(mpj.IrecvTyped(g.Comm, b.col(b.columns+1), g.right, haloTag))
	start(mpj.Isend(g.Comm, b.row(1), g.up, haloTag))
	start(mpj.Isend(g.Comm, b.row(b.rows), g.down, haloTag))
	start(mpj.IsendTyped(g.Comm, b.col(1), g.left, haloTag))
	start(mpj.IsendTyped(g.Comm, b.col(b.columns), g.right, haloTag))
	return requests, first
}

// gather returns the whole plate, row by row, at rank 0. A vector datatype receives each block at
// its place: the distance between its rows is the length of a row of the plate.
func (g grid) gather(b *block) ([]float64, error) {
	sent, err := mpj.IsendTyped(g.Comm, b.inner(), 0, plateTag)
	if err != nil {
		return nil, err
	}
	var plate []float64
	if g.Rank() == 0 {
		plate = make([]float64, g.side*g.side)
		for rank := range g.Size() {
			a, err := g.area(rank)
			if err != nil {
				return nil, err
			}
			rows := mpj.TypeOf[float64]().Vector(a.rows, a.columns, g.side)
			if _, err := mpj.RecvTyped(g.Comm, rows.At(plate, a.row*g.side+a.column, 1), rank, plateTag); err != nil {
				return nil, err
			}
		}
	}
	_, err = sent.Wait()
	return plate, err
}
