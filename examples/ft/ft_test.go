package main

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/examples/internal/npb/npbtest"
	"github.com/p2pmpi/p2pmpi/mpj"
)

func TestClassS(t *testing.T) { npbtest.Verify(t, kernel, 1, 2, 4) }

func TestVerifyRefusesOtherValues(t *testing.T) {
	for name, c := range classes {
		if !c.verify(c.checksums) || c.verify(c.checksums[1:]) {
			t.Errorf("class %s rejects its own checksums", name)
		}
		for i := range c.checksums {
			for _, factor := range []complex128{1 + 2*epsilon, 1 + 2*epsilon*1i, complex(math.NaN(), 0)} {
				other := slices.Clone(c.checksums)
				other[i] *= factor
				if c.verify(other) {
					t.Errorf("class %s accepts the wrong value %v as checksum %d", name, other[i], i+1)
				}
			}
		}
	}
}

// direct computes the transform by its definition.
func direct(v []complex128, direction int) []complex128 {
	sign := []float64{forward: -1, backward: 1}[direction]
	out := make([]complex128, len(v))
	for k := range out {
		for j, x := range v {
			out[k] += x * cmplx.Rect(1, sign*2*math.Pi*float64(j*k%len(v))/float64(len(v)))
		}
	}
	return out
}

func random(n int) (v []complex128, seed uint64) {
	seed = rand.Uint64()
	source := rand.New(rand.NewPCG(seed, 0))
	for range n {
		v = append(v, complex(source.Float64(), source.Float64()))
	}
	return v, seed
}

func TestTransformMatchesItsDefinition(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16, 32, 64, 512} {
		for _, direction := range []int{forward, backward} {
			t.Run(fmt.Sprintf("%d elements, direction %d", n, direction), func(t *testing.T) {
				const lines = 2 * width
				data, seed := random(n * lines)
				strided := make([]complex128, n*lines)
				var want []complex128
				for l := range lines {
					line := data[l*n : (l+1)*n]
					want = append(want, direct(line, direction)...)
					for j, v := range line {
						strided[l+j*lines] = v
					}
				}
				newTransform(n).contiguous(data, lines, direction)
				newTransform(n).strided(strided, lines, lines, direction)
				for i := range want {
					if got := data[i]; cmplx.Abs(got-want[i]) > 1e-10 {
						t.Fatalf("seed %d: element %d is %v, want %v", seed, i, got, want[i])
					}
					if got := strided[i/n+i%n*lines]; got != data[i] {
						t.Fatalf("seed %d: strided element %d is %v, contiguous %v", seed, i, got, data[i])
					}
				}
			})
		}
	}
}

// box is a small problem with three different sides.
var box = class{nx: 32, ny: 16, nz: 8}

// TestTransformBackIsTheInverse checks that a transform followed by transformBack multiplies by the
// number of points.
func TestTransformBackIsTheInverse(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		npbtest.Run(t, n, func(w *mpj.World) error {
			s := newSolver(&npb.Run{World: w}, box)
			before, seed := random(len(s.space))
			copy(s.space, before)
			if err := s.transform(); err != nil {
				return err
			}
			copy(s.space, s.frequencies)
			if err := s.transformBack(); err != nil {
				return err
			}
			for i, v := range s.space {
				if got := v / complex(float64(box.points()), 0); cmplx.Abs(got-before[i]) > 1e-13 {
					return fmt.Errorf("seed %d: point %d of rank %d is %v, was %v", seed, i, w.Rank(), got, before[i])
				}
			}
			return nil
		})
	}
}

// TestWaveHasOneFrequency checks that the axes are in the right order.
func TestWaveHasOneFrequency(t *testing.T) {
	const fx, fy, fz = 3, 5, 6
	for _, n := range []int{1, 4} {
		npbtest.Run(t, n, func(w *mpj.World) error {
			s := newSolver(&npb.Run{World: w}, box)
			for i := range s.space {
				x, y, z := i%box.nx, i/box.nx%box.ny, i/box.nx/box.ny+w.Rank()*s.nz
				turns := float64(fx*x)/float64(box.nx) + float64(fy*y)/float64(box.ny) + float64(fz*z)/float64(box.nz)
				s.space[i] = cmplx.Rect(1, 2*math.Pi*turns)
			}
			if err := s.transform(); err != nil {
				return err
			}
			for i, got := range s.frequencies {
				x, y, z := i%box.nx, i/box.nx%s.ny+w.Rank()*s.ny, i/box.nx/s.ny
				want := complex128(0)
				if x == fx && y == fy && z == fz {
					want = complex(float64(box.points()), 0)
				}
				if cmplx.Abs(got-want) > 1e-9 {
					return fmt.Errorf("frequency %d, %d, %d is %v, want %v", x, y, z, got, want)
				}
			}
			return nil
		})
	}
}

func BenchmarkTransform(b *testing.B) {
	const n, lines = 256, 256
	t := newTransform(n)
	data, _ := random(n * lines)
	for b.Loop() {
		t.contiguous(data, lines, forward)
		t.strided(data, lines, lines, backward)
		for i := range data {
			data[i] /= n
		}
	}
}
