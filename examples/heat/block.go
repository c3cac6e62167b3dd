package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// hot is the temperature of the upper edge of the plate.
const hot = 100

// A block is a part of the plate with its halo: rows x columns temperatures, and one more cell on
// each side. Beyond the edge of the plate, the halo contains the constant temperature of the edge.
type block struct {
	rows, columns int
	cells         []float64 // (rows+2) x (columns+2), row by row
	column        mpj.Datatype[float64]
}

// newBlock returns a block at 0 degrees. upper reports whether the block is at the upper edge.
func newBlock(rows, columns int, upper bool) *block {
	b := &block{
		rows: rows, columns: columns,
		cells:  make([]float64, (rows+2)*(columns+2)),
		column: mpj.TypeOf[float64]().Vector(rows, 1, columns+2),
	}
	if upper {
		for column := range b.row(0) {
			b.row(0)[column] = hot
		}
	}
	return b
}

// at returns the index of a cell. Row 0 and column 0 are in the halo.
func (b *block) at(row, column int) int { return row*(b.columns+2) + column }

// row returns a row without its two cells in the halo.
func (b *block) row(row int) []float64 { return b.cells[b.at(row, 1):][:b.columns] }

// col returns the cells of a column without its two cells in the halo.
func (b *block) col(column int) mpj.Typed { return b.column.At(b.cells, b.at(1, column), 1) }

// inner returns the cells of the block without its halo.
func (b *block) inner() mpj.Typed {
	return mpj.TypeOf[float64]().Vector(b.rows, b.columns, b.columns+2).At(b.cells, b.at(1, 1), 1)
}

// step computes the temperatures that follow those of old, in rows row0 to row1 and columns column0
// to column1, inclusive. It returns the greatest change.
func (b *block) step(old *block, row0, row1, column0, column1 int) float64 {
	change := 0.0
	width := column1 - column0 + 1
	if width < 1 {
		return 0
	}
	for row := row0; row <= row1; row++ {
		at := b.at(row, column0)
		up, down := old.cells[at-(b.columns+2):][:width], old.cells[at+b.columns+2:][:width]
		here := old.cells[at-1:][:width+2]
		next := b.cells[at:][:width]
		for i := range next {
			t := (up[i] + down[i] + here[i] + here[i+2]) / 4
			if d := math.Abs(t - here[i+1]); d > change { // faster than max, which handles NaN
				change = d
			}
			next[i] = t
		}
	}
	return change
}

// interior computes all cells that do not depend on the halo.
func (b *block) interior(old *block) float64 {
	return b.step(old, 2, b.rows-1, 2, b.columns-1)
}

// border computes the other cells: the outermost rows, and the outermost columns between them. In a
// block of one row or column, the first row or column is also the last.
func (b *block) border(old *block) float64 {
	change := b.step(old, 1, 1, 1, b.columns)
	if b.rows > 1 {
		change = max(change, b.step(old, b.rows, b.rows, 1, b.columns))
	}
	change = max(change, b.step(old, 2, b.rows-1, 1, 1))
	if b.columns > 1 {
		change = max(change, b.step(old, 2, b.rows-1, b.columns, b.columns))
	}
	return change
}
