package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/examples/internal/npb/npbtest"
	"github.com/p2pmpi/p2pmpi/mpj"
)

func TestClassS(t *testing.T) { npbtest.Verify(t, kernel, 1, 2, 4) }

func TestVerifyRefusesOtherValues(t *testing.T) {
	for name, c := range classes {
		if !c.verify(c.zeta) || c.verify(c.zeta*(1+2*epsilon)) || c.verify(math.NaN()) {
			t.Errorf("class %s: verify rejects the value %v or accepts a different one", name, c.zeta)
		}
	}
}

func TestRanksMustBeAPowerOfTwo(t *testing.T) {
	err := mpj.RunLocal(t.Context(), 3, func(w *mpj.World) error {
		return kernel.Execute(w, nil, &bytes.Buffer{}, &bytes.Buffer{})
	})
	if !errors.Is(err, npb.ErrUsage) {
		t.Errorf("3 ranks: %v", err)
	}
}

// odd is a problem whose order is not divisible by a power of two.
var odd = class{order: 51, nonzeros: 3, shift: 10}

// vector returns element i of an arbitrary vector for odd.
func vector(i int) float64 { return math.Sin(float64(i)) }

// TestProductIsTheSameInEveryGrid compares the products of all grids with the product of the whole
// matrix.
func TestProductIsTheSameInEveryGrid(t *testing.T) {
	whole := newMatrix(odd, block{span{0, odd.order}, span{0, odd.order}})
	p, want := make([]float64, odd.order), make([]float64, odd.order)
	for i := range p {
		p[i] = vector(i)
	}
	whole.multiply(p, want)
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		npbtest.Run(t, n, func(w *mpj.World) error { return checkProduct(w, want) })
	}
}

func checkProduct(w *mpj.World, want []float64) error {
	g := newGrid(&npb.Run{World: w}, odd.order)
	s := newSolver(g, newMatrix(odd, g.block()))
	columns := g.block().columns
	for i := range s.p {
		s.p[i] = vector(columns.from + i)
	}
	if err := s.multiply(s.p, s.q); err != nil {
		return err
	}
	for i, got := range s.q {
		if want := want[columns.from+i]; math.Abs(got-want) > 1e-13 {
			return fmt.Errorf("rank %d: element %d is %v, want %v", w.Rank(), columns.from+i, got, want)
		}
	}
	return nil
}

// TestMatrixIsSymmetric checks that the matrix is symmetric, as the method requires, and that rows
// are sorted.
func TestMatrixIsSymmetric(t *testing.T) {
	m := newMatrix(odd, block{span{0, odd.order}, span{0, odd.order}})
	dense := make(map[[2]int]float64)
	for i := range odd.order {
		last := int32(-1)
		for k := m.starts[i]; k < m.starts[i+1]; k++ {
			if m.columns[k] <= last {
				t.Fatalf("row %d: column %d follows column %d", i, m.columns[k], last)
			}
			last = m.columns[k]
			dense[[2]int{i, int(last)}] = m.values[k]
		}
	}
	for at, value := range dense {
		if other := dense[[2]int{at[1], at[0]}]; math.Abs(other-value) > 1e-15 {
			t.Errorf("element %v is %v, its transposed element is %v", at, value, other)
		}
	}
}

func TestSumIsTheSameInEveryColumn(t *testing.T) {
	const n = 8 // 2 rows, 4 columns
	got := make([]float64, n)
	if err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		sum, err := newGrid(&npb.Run{World: w}, odd.order).sum(1 / float64(w.Rank()+3))
		got[w.Rank()] = sum[0]
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for rank, sum := range got {
		if sum != got[rank/4*4] {
			t.Errorf("rank %d has %v, the first rank of its row has %v", rank, sum, got[rank/4*4])
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	c := classes["W"]
	m := newMatrix(c, block{span{0, c.order}, span{0, c.order}})
	p, w := make([]float64, c.order), make([]float64, c.order)
	for b.Loop() {
		m.multiply(p, w)
	}
	b.ReportMetric(float64(2*len(m.values)*b.N)/1e6/b.Elapsed().Seconds(), "Mop/s")
}
