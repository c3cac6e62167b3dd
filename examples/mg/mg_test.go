package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/examples/internal/npb/npbtest"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// TestClassS verifies class S. With 16 ranks, the coarsest grid is not divided.
func TestClassS(t *testing.T) { npbtest.Verify(t, kernel, 1, 2, 4, 16) }

func TestVerifyRefusesOtherValues(t *testing.T) {
	for name, c := range classes {
		if !c.verify(c.norm) || c.verify(c.norm*(1+2*epsilon)) || c.verify(math.NaN()) {
			t.Errorf("class %s: verify rejects the norm %v or accepts a different one", name, c.norm)
		}
	}
}

// tiny is a problem that is small enough for a complete check.
var tiny = class{log: 3, iterations: 2, smoother: small}

// random fills f with random numbers.
func random(f *field, source *rand.Rand) {
	for i := range f.values {
		f.values[i] = source.Float64() - 0.5
	}
}

// at returns the stencil's weighted sum around a point of f.
func (s stencil) at(f *field, i, j, k int) (sum float64) {
	for dz := -1; dz <= 1; dz++ {
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				sum += s[dx*dx+dy*dy+dz*dz] * f.row(j+dy, k+dz)[i+dx]
			}
		}
	}
	return sum
}

// TestOperatorsMatchTheirStencils compares the operators with sums over 27 points.
func TestOperatorsMatchTheirStencils(t *testing.T) {
	seed := rand.Uint64()
	source := rand.New(rand.NewPCG(seed, 0))
	npbtest.Run(t, 1, func(w *mpj.World) error {
		s := newSolver(newMesh(&npb.Run{World: w}), tiny)
		u, r := s.u[3], s.r[3]
		random(u, source)
		random(s.v, source)
		if err := s.residual(u, s.v, r); err != nil {
			return err
		}
		before := newField(u.inside(), false)
		copy(before.values, u.values)
		if err := s.smooth(r, u); err != nil {
			return err
		}
		if err := s.restrict(3); err != nil {
			return err
		}
		u.rows(func(j, k int) {
			for i := 1; i < u.size[x]-1; i++ {
				near(t, seed, "residual", r.row(j, k)[i], s.v.row(j, k)[i]-laplace.at(before, i, j, k))
				near(t, seed, "smoother", u.row(j, k)[i]-before.row(j, k)[i], tiny.smoother.at(r, i, j, k))
			}
		})
		mean := stencil{1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16}
		s.r[2].rows(func(j, k int) {
			for i := 1; i < s.r[2].size[x]-1; i++ {
				near(t, seed, "restriction", s.r[2].row(j, k)[i], mean.at(r, 2*i, 2*j, 2*k))
			}
		})
		return nil
	})
}

func near(t *testing.T, seed uint64, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-13 {
		t.Errorf("seed %d: %s is %v, want %v", seed, what, got, want)
	}
}

// TestInterpolationIsLinear interpolates a linear function to a finer grid, where it must be the
// same function.
func TestInterpolationIsLinear(t *testing.T) {
	plane := func(i, j, k float64) float64 { return 3 + 2*i - 5*j + 7*k }
	npbtest.Run(t, 1, func(w *mpj.World) error {
		s := newSolver(newMesh(&npb.Run{World: w}), tiny)
		coarse, fine := s.u[2], s.u[3]
		for k := range coarse.size[z] {
			for j := range coarse.size[y] {
				for i := range coarse.size[x] {
					coarse.row(j, k)[i] = plane(float64(i), float64(j), float64(k))
				}
			}
		}
		s.interpolate(3)
		for k := range fine.size[z] {
			for j := range fine.size[y] {
				for i, got := range fine.row(j, k) {
					near(t, 0, fmt.Sprint("point ", i, j, k), got, plane(float64(i)/2, float64(j)/2, float64(k)/2))
				}
			}
		}
		return nil
	})
}

// TestLayerHoldsTheNeighboursValues numbers the points of the grid and checks the layers, including
// in meshes that NPB would not create.
func TestLayerHoldsTheNeighboursValues(t *testing.T) {
	const points = 8
	for _, n := range []int{1, 2, 4, 8, 16, 64} {
		npbtest.Run(t, n, func(w *mpj.World) error {
			m := newMesh(&npb.Run{World: w})
			f := newField(m.box(points), false)
			at := m.corner(w.Rank(), f.inside())
			number := func(i, j, k int) float64 {
				wrap := func(c, axis int) int { return (at[axis] + c - 1 + points) % points }
				return float64(wrap(i, x) + points*(wrap(j, y)+points*wrap(k, z)))
			}
			f.rows(func(j, k int) {
				for i := 1; i < f.size[x]-1; i++ {
					f.row(j, k)[i] = number(i, j, k)
				}
			})
			if err := m.update(f); err != nil {
				return err
			}
			for k := range f.size[z] {
				for j := range f.size[y] {
					for i, got := range f.row(j, k) {
						if want := number(i, j, k); got != want {
							return fmt.Errorf("rank %d has %v at %d, %d, %d, want %v", w.Rank(), got, i, j, k, want)
						}
					}
				}
			}
			return nil
		})
	}
}

// TestEveryMeshComputesTheSame compares all points after two cycles, with a coarsest grid that 32
// ranks do not divide.
func TestEveryMeshComputesTheSame(t *testing.T) {
	var want *field
	for _, n := range []int{1, 2, 8, 32} {
		npbtest.Run(t, n, func(w *mpj.World) error {
			s := newSolver(newMesh(&npb.Run{World: w}), tiny)
			if err := s.charge(); err != nil {
				return err
			}
			if _, err := s.solve(tiny.iterations); err != nil {
				return err
			}
			whole := newField([3]int{8, 8, 8}, true)
			if err := s.mesh.gather(s.u[tiny.log], whole); err != nil || w.Rank() != 0 {
				return err
			}
			if want == nil {
				want = whole
			}
			for i, got := range whole.values {
				if got != want.values[i] {
					return fmt.Errorf("value %d is %v, want %v", i, got, want.values[i])
				}
			}
			return nil
		})
	}
}

func BenchmarkCycle(b *testing.B) {
	if err := mpj.RunLocal(b.Context(), 1, func(w *mpj.World) error {
		c := classes["W"]
		s := newSolver(newMesh(&npb.Run{World: w}), c)
		for b.Loop() {
			if err := s.cycle(c.log); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}
