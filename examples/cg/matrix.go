package main

import (
	"math"
	"slices"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
)

// A matrix is one rank's block of the sparse matrix A, by rows. Row i has the elements
// values[starts[i]:starts[i+1]], in the columns columns[starts[i]:starts[i+1]]. Column numbers are
// relative to the block's first column.
type matrix struct {
	starts  []int
	columns []int32
	values  []float64
}

// A sparse is a vector that is stored by its nonzero elements: values[i] is element at[i].
type sparse struct {
	at     []int32
	values []float64
}

// newMatrix returns block b of NPB's matrix. The matrix is the sum over i of s_i x_i x_i^T, plus
// (condition - shift) I. x_i is a random sparse vector with 1/2 at position i. s_i falls from 1 to
// condition in geometric progression.
func newMatrix(c class, b block) matrix {
	vectors := randomVectors(c)
	m := matrix{starts: make([]int, b.rows.len()+1)}
	for _, v := range vectors { // upper bounds of the row lengths
		width := b.columns.count(v.at)
		for _, row := range v.at {
			if b.rows.has(int(row)) {
				m.starts[int(row)-b.rows.from+1] += width
			}
		}
	}
	for i := range b.rows.len() {
		m.starts[i+1] += m.starts[i] + 1 // plus the diagonal
	}
	m.columns = make([]int32, m.starts[b.rows.len()])
	m.values = make([]float64, len(m.columns))
	m.compact(m.fill(c, b, vectors), b.columns.len())
	return m
}

// randomVectors returns all vectors x_i.
func randomVectors(c class) []sparse {
	random, _ := npb.Seed.Next() // NPB's makea draws one number first
	power := 1
	for power < c.order {
		power *= 2
	}
	vectors := make([]sparse, c.order)
	for i := range vectors {
		var v sparse
		for len(v.at) < c.nonzeros {
			var value, place float64
			random, value = random.Next()
			random, place = random.Next()
			at := int32(place * float64(power))
			if int(at) < c.order && !slices.Contains(v.at, at) {
				v.at = append(v.at, at)
				v.values = append(v.values, value)
			}
		}
		v.set(int32(i), 0.5)
		vectors[i] = v
	}
	return vectors
}

// set sets the element at position at, which may be new, to value.
func (v *sparse) set(at int32, value float64) {
	if k := slices.Index(v.at, at); k >= 0 {
		v.values[k] = value
		return
	}
	v.at = append(v.at, at)
	v.values = append(v.values, value)
}

// fill stores the terms of the sum in the rows, where the same column may occur several times. It
// returns the end of each row's terms.
func (m *matrix) fill(c class, b block, vectors []sparse) (ends []int) {
	ends = slices.Clone(m.starts[:len(m.starts)-1])
	put := func(row, column int, value float64) {
		k := &ends[row-b.rows.from]
		m.columns[*k], m.values[*k] = int32(column-b.columns.from), value
		*k++
	}
	scale, ratio := 1.0, math.Pow(condition, 1/float64(c.order))
	for i, v := range vectors {
		for r, row := range v.at {
			if !b.rows.has(int(row)) {
				continue
			}
			for k, column := range v.at {
				if b.columns.has(int(column)) {
					put(int(row), int(column), v.values[r]*(scale*v.values[k]))
				}
			}
		}
		if b.rows.has(i) && b.columns.has(i) {
			put(i, i, condition-c.shift)
		}
		scale *= ratio
	}
	return ends
}

// compact adds up the terms of the same row and column, in the order in which fill stored them. It
// then sorts each row by column and removes the gaps between rows.
func (m *matrix) compact(ends []int, width int) {
	sums, seen := make([]float64, width), make([]bool, width)
	end := 0
	for i, rowEnd := range ends {
		rowStart := m.starts[i]
		m.starts[i] = end
		for k := rowStart; k < rowEnd; k++ {
			column := m.columns[k]
			if !seen[column] {
				seen[column] = true
				m.columns[end] = column
				end++
			}
			sums[column] += m.values[k]
		}
		row := m.columns[m.starts[i]:end]
		slices.Sort(row)
		for k, column := range row {
			m.values[m.starts[i]+k] = sums[column]
			sums[column], seen[column] = 0, false
		}
	}
	m.starts[len(ends)] = end
	m.columns, m.values = slices.Clone(m.columns[:end]), slices.Clone(m.values[:end])
}

// multiply sets w to the product of m and p. It uses two sums for each row, so the processor can add
// to one sum while the other is not ready.
func (m *matrix) multiply(p, w []float64) {
	for i := range w {
		columns := m.columns[m.starts[i]:m.starts[i+1]]
		values := m.values[m.starts[i]:m.starts[i+1]]
		values = values[:len(columns)]
		var even, odd float64
		k := 0
		for ; k+1 < len(columns); k += 2 {
			even += values[k] * p[columns[k]]
			odd += values[k+1] * p[columns[k+1]]
		}
		if k < len(columns) {
			even += values[k] * p[columns[k]]
		}
		w[i] = even + odd
	}
}
