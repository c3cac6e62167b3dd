package main

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// sequential solves the same problem like a program for one process, with two arrays that include
// the edges.
func sequential(side int, tolerance float64, limit int) (plate []float64, steps int, change float64) {
	width := side + 2
	old, next := make([]float64, width*width), make([]float64, width*width)
	for i := 1; i <= side; i++ {
		old[i], next[i] = hot, hot
	}
	for steps = 1; ; steps++ {
		change = 0
		for row := 1; row <= side; row++ {
			for i := row*width + 1; i <= row*width+side; i++ {
				next[i] = (old[i-width] + old[i+width] + old[i-1] + old[i+1]) / 4
				change = math.Max(change, math.Abs(next[i]-old[i]))
			}
		}
		old, next = next, old
		if steps%checkEvery == 0 && change <= tolerance || steps == limit {
			break
		}
	}
	for row := 1; row <= side; row++ {
		plate = append(plate, old[row*width+1:][:side]...)
	}
	return plate, steps, change
}

func TestResultMatchesASequentialSolverBitForBit(t *testing.T) {
	for _, tc := range []struct {
		name      string
		side      int
		tolerance float64
		limit     int
	}{
		{"until the tolerance", 24, 0.1, 10_000},
		{"until the limit", 17, 0, 123},
		{"one step", 12, 0, 1},
		{"blocks of few points", 6, 0.01, 10_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, steps, change := sequential(tc.side, tc.tolerance, tc.limit)
			for _, n := range []int{1, 2, 3, 4, 6, 12} {
				var plate []float64
				err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
					g, err := newGrid(w.Comm, tc.side)
					if err != nil {
						return err
					}
					s, err := g.solve(tc.tolerance, tc.limit, func(int, float64) {})
					if err != nil {
						return err
					}
					if s.steps != steps || s.change != change {
						t.Errorf("rank %d of %d: %d steps to %v, want %d to %v", w.Rank(), n, s.steps, s.change, steps, change)
					}
					all, err := g.gather(s.block)
					if g.Rank() == 0 {
						plate = all
					}
					return err
				})
				if err != nil || !slices.Equal(plate, want) {
					t.Errorf("the plate of %d ranks differs, %v", n, err)
				}
			}
		})
	}
}

// runAll runs the program with n ranks and returns their standard output and standard error.
func runAll(n int, args ...string) (stdout, stderr string, err error) {
	out, errs := make([]bytes.Buffer, n), make([]bytes.Buffer, n)
	err = mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &out[w.Rank()], &errs[w.Rank()])
	})
	for rank := range n {
		stdout += out[rank].String()
		stderr += errs[rank].String()
	}
	return stdout, stderr, err
}

func TestPictureShowsTheHotEdge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heat.png")
	stdout, stderr, err := runAll(4, "-side", "31", "-tolerance", "1e-4", "-png", file)
	if err != nil {
		t.Fatal(err)
	}
	// At the end the centre has 25 degrees, the mean of the four edges.
	if !strings.HasPrefix(stdout, "picture  "+file+", 31 x 31\nranks    2 x 2\nsteps    ") || !strings.Contains(stdout, "\ncentre   24.98 degrees\n") {
		t.Errorf("the program printed %q", stdout)
	}
	if lines := strings.Count(stderr, "\n"); lines != 5 {
		t.Errorf("the program printed %d lines of progress: %q", lines, stderr)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != 31 || img.Bounds().Dy() != 31 {
		t.Fatalf("the picture has bounds %v, %v", img.Bounds(), err)
	}
	for y := 1; y < 31; y++ {
		above, _, _, _ := img.At(15, y-1).RGBA()
		if here, _, _, _ := img.At(15, y).RGBA(); here > above {
			t.Errorf("row %d is hotter than the row above", y)
		}
	}
}

func TestPlateTooSmallForTheRanks(t *testing.T) {
	if _, _, err := runAll(5, "-side", "4"); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "too small for 5 x 1 ranks") {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"file"}, {"-what"}, {"-h"}, {"-side", "0"}, {"-side", "9999999"}, {"-tolerance", "-1"}, {"-tolerance", "NaN"}, {"-steps", "0"}, {"-png", ""},
	} {
		if _, _, err := runAll(2, args...); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
}

func TestUnwritableFile(t *testing.T) {
	_, _, err := runAll(3, "-side", "8", "-png", filepath.Join(t.TempDir(), "none", "heat.png"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, errUsage) {
		t.Error(err)
	}
}
