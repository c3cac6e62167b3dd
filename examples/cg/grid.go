package main

import (
	"math/bits"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A span is a range of numbers: from is included, and to is not.
type span struct{ from, to int }

func (s span) len() int       { return s.to - s.from }
func (s span) has(i int) bool { return s.from <= i && i < s.to }

// count returns the number of numbers that are in s.
func (s span) count(numbers []int32) (n int) {
	for _, i := range numbers {
		if s.has(int(i)) {
			n++
		}
	}
	return n
}

// part returns the i-th of n parts of s, of nearly the same length.
func (s span) part(i, n int) span {
	return span{s.from + s.len()*i/n, s.from + s.len()*(i+1)/n}
}

// A block is a rectangle of the matrix.
type block struct{ rows, columns span }

// A grid is a rank's position in a grid of ranks. The grid has as many columns as rows, or twice as
// many.
type grid struct {
	comm          *mpj.Comm
	run           *npb.Run // its clock measures the time of communication
	rows, columns int
	row, column   int

	order  int       // order of the matrix
	in     []float64 // receive buffer for pieces of w
	mine   []float64 // this rank's contributions to sum
	theirs []float64 // receive buffer of sum
}

// maxSums bounds the numbers that can be summed at once.
const maxSums = 2

// The tags of the grid's messages.
const (
	sumTag = iota
	halfTag
	rowTag
	swapTag
)

// newGrid places the rank of run in a grid for a matrix of the given order. The number of ranks
// must be a power of two.
func newGrid(run *npb.Run, order int) *grid {
	log := bits.TrailingZeros(uint(run.Size()))
	g := &grid{comm: run.World.Comm, run: run, order: order, rows: 1 << (log / 2), columns: 1 << ((log + 1) / 2)}
	g.row, g.column = g.comm.Rank()/g.columns, g.comm.Rank()%g.columns
	g.in = make([]float64, g.block().rows.len())
	g.mine, g.theirs = make([]float64, maxSums), make([]float64, maxSums)
	return g
}

// rowSpan returns the rows of the matrix that belong to a row of ranks.
func (g *grid) rowSpan(row int) span { return span{0, g.order}.part(row, g.rows) }

// columnSpan returns the columns of the matrix that belong to a column of ranks. They are the span
// of the row with that number, or half of a row's span if the grid has more columns than rows.
func (g *grid) columnSpan(column int) span {
	parts := g.columns / g.rows
	return g.rowSpan(column/parts).part(column%parts, parts)
}

// block returns this rank's block of the matrix.
func (g *grid) block() block { return block{g.rowSpan(g.row), g.columnSpan(g.column)} }

// rank returns the rank at a row and column.
func (g *grid) rank(row, column int) int { return row*g.columns + column }

// sum returns the sum of x over the ranks of this row, that is, over all columns of the matrix.
// Every rank gets the same bits: in each step, two ranks add the same two numbers. The result is
// valid until the next call of sum.
func (g *grid) sum(x ...float64) ([]float64, error) {
	mine, theirs := g.mine[:len(x)], g.theirs[:len(x)]
	copy(mine, x)
	err := g.run.Communicate(func() error {
		for bit := 1; bit < g.columns; bit *= 2 {
			partner := g.rank(g.row, g.column^bit)
			if _, err := mpj.Sendrecv(g.comm, mine, partner, sumTag, theirs, partner, sumTag); err != nil {
				return err
			}
			add(mine, theirs)
		}
		return nil
	})
	return mine, err
}

// transpose sums w over the ranks of this row, each of which has a part of every element. It stores
// the piece that belongs to this rank's column in q, and overwrites w.
func (g *grid) transpose(w, q []float64) error {
	return g.run.Communicate(func() error {
		w, err := g.sumRow(w)
		if err != nil {
			return err
		}
		parts := g.columns / g.rows
		partner := g.rank(g.column/parts, g.row*parts+g.column%parts)
		if partner == g.comm.Rank() {
			copy(q, w)
			return nil
		}
		_, err = mpj.Sendrecv(g.comm, w, partner, swapTag, q, partner, swapTag)
		return err
	})
}

// sumRow sums w over the ranks of this row. With twice as many columns as rows, it sums only the
// half that this rank will send. For this, neighbours first exchange the halves that they do not
// need.
func (g *grid) sumRow(w []float64) ([]float64, error) {
	bit := 1
	if g.columns > g.rows {
		halves := span{0, len(w)}
		mine, other := halves.part(g.column%2, 2), halves.part(1-g.column%2, 2)
		partner := g.rank(g.row, g.column^1)
		in := g.in[:mine.len()]
		if _, err := mpj.Sendrecv(g.comm, w[other.from:other.to], partner, halfTag, in, partner, halfTag); err != nil {
			return nil, err
		}
		w = w[mine.from:mine.to]
		add(w, in)
		bit = 2
	}
	for in := g.in[:len(w)]; bit < g.columns; bit *= 2 {
		partner := g.rank(g.row, g.column^bit)
		if _, err := mpj.Sendrecv(g.comm, w, partner, rowTag, in, partner, rowTag); err != nil {
			return nil, err
		}
		add(w, in)
	}
	return w, nil
}

// add adds y to x.
func add(x, y []float64) {
	y = y[:len(x)]
	for i := range x {
		x[i] += y[i]
	}
}
