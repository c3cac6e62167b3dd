package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// sequential moves all bodies in one process, in the simplest way.
func sequential(count, steps int, time float64, seed uint64) *system {
	s := newSystem(count, 0, 1, seed)
	pull := func() {
		for i := range count {
			var a [3]float64
			for j := range count {
				if i == j {
					continue
				}
				var d [3]float64
				d2 := softening * softening
				for k := range d {
					d[k] = s.bodies[j*perBody+k] - s.bodies[i*perBody+k]
					d2 += d[k] * d[k]
				}
				for k := range d {
					a[k] += s.bodies[j*perBody+3] * d[k] / math.Pow(d2, 1.5)
				}
			}
			s.acceleration[i] = vector{a[0], a[1], a[2]}
		}
	}
	pull()
	for range steps {
		s.kick(time / 2)
		s.drift(time)
		pull()
		s.kick(time / 2)
	}
	return s
}

// simulate moves bodies with n ranks and returns all bodies.
func simulate(t *testing.T, n, count, steps int, time float64, seed uint64) (block, []vector) {
	t.Helper()
	var bodies block
	var velocities []vector
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		r := newRing(w.Comm, count, seed)
		if err := r.forces(); err != nil {
			return err
		}
		if err := r.run(w, steps, time, func(int) {}); err != nil {
			return err
		}
		b, v, err := r.gather()
		if w.Rank() == 0 {
			bodies, velocities = b, v
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies, velocities
}

func TestBodiesMatchASequentialProgram(t *testing.T) {
	for _, tc := range []struct{ count, steps int }{{2, 10}, {3, 5}, {50, 20}, {101, 10}} {
		want := sequential(tc.count, tc.steps, 0.01, 3)
		for _, n := range []int{1, 2, 3, 4, 7} {
			bodies, velocities := simulate(t, n, tc.count, tc.steps, 0.01, 3)
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*float64(tc.count) }
			if !slices.EqualFunc(bodies, want.bodies, near) {
				t.Errorf("%d bodies, %d ranks: positions differ", tc.count, n)
			}
			if !slices.EqualFunc(velocities, want.velocities, func(a, b vector) bool {
				return near(a.x, b.x) && near(a.y, b.y) && near(a.z, b.z)
			}) {
				t.Errorf("%d bodies, %d ranks: velocities differ", tc.count, n)
			}
		}
	}
}

func TestSameNumberOfRanksSameBits(t *testing.T) {
	for _, n := range []int{1, 4} {
		bodies, velocities := simulate(t, n, 60, 20, 0.02, 1)
		again, velocitiesAgain := simulate(t, n, 60, 20, 0.02, 1)
		if !slices.Equal(bodies, again) || !slices.Equal(velocities, velocitiesAgain) {
			t.Errorf("%d ranks: two runs differ", n)
		}
	}
}

func TestBodiesDoNotDependOnTheNumberOfRanks(t *testing.T) {
	want := newSystem(10, 0, 1, 5).bodies
	var got block
	for rank := range 3 {
		got = append(got, newSystem(10, rank, 3, 5).bodies...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the bodies of all ranks are %v, want %v", got, want)
	}
}

// TestTwoBodiesCircle simulates a case with a known solution. At distance d the softened force is m
// d/(d²+ε²)^1.5, and a circular orbit of diameter d requires v² = force d/2.
func TestTwoBodiesCircle(t *testing.T) {
	const d, m = 2.0, 0.5
	v := math.Sqrt(m * d / math.Pow(d*d+softening*softening, 1.5) * d / 2)
	err := mpj.RunLocal(context.Background(), 2, func(w *mpj.World) error {
		r := newRing(w.Comm, 2, 0)
		side := float64(1 - 2*w.Rank())
		r.s.bodies = block{side * d / 2, 0, 0, m}
		r.s.velocities = []vector{{0, side * v, 0}}
		if err := r.forces(); err != nil {
			return err
		}
		turn := 2 * math.Pi * (d / 2) / v // time of one full turn
		if err := r.run(w, 1000, turn/1000, func(int) {}); err != nil {
			return err
		}
		if p := r.s.bodies; math.Abs(p[0]-side*d/2) > 1e-4 || math.Abs(p[1]) > 1e-4 {
			t.Errorf("rank %d ends at %v", w.Rank(), p)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// runAll runs the program with n ranks and returns the output of rank 0.
func runAll(n int, args ...string) (stdout, stderr string, err error) {
	out, errs := make([]bytes.Buffer, n), make([]bytes.Buffer, n)
	err = mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &out[w.Rank()], &errs[w.Rank()])
	})
	for rank := 1; rank < n; rank++ {
		if out[rank].Len()+errs[rank].Len() > 0 {
			err = errors.Join(err, errors.New("a rank other than 0 has printed"))
		}
	}
	return out[0].String(), errs[0].String(), err
}

func TestReportAndFiles(t *testing.T) {
	dir := t.TempDir()
	table, image := filepath.Join(dir, "n.csv"), filepath.Join(dir, "n.png")
	stdout, stderr, err := runAll(3, "-bodies", "90", "-steps", "40", "-csv", table, "-png", image)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stdout, "bodies   90\nranks    3\nsteps    40 of 0.01\nenergy   ") || strings.Count(stderr, "\n") != 10 {
		t.Errorf("the program printed %q and %q", stdout, stderr)
	}
	_, rest, _ := strings.Cut(stdout, "\ndrift    ")
	if drift, err := strconv.ParseFloat(strings.Fields(rest)[0], 64); err != nil || drift > 1e-3 {
		t.Errorf("the drift of the energy is %v, %v", drift, err)
	}
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if records, err := csv.NewReader(f).ReadAll(); err != nil || len(records) != 91 || len(records[90]) != 7 {
		t.Errorf("%d lines, %v", len(records), err)
	}
	g, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if img, err := png.Decode(g); err != nil || img.Bounds().Dx() != pictureSide {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"file"}, {"-what"}, {"-h"}, {"-bodies", "1"}, {"-bodies", "x"}, {"-steps", "0"}, {"-time", "0"}, {"-time", "NaN"}, {"-time", "2"}, {"-seed", "-1"},
	} {
		if _, _, err := runAll(2, args...); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
}

func TestUnwritableFile(t *testing.T) {
	_, _, err := runAll(3, "-bodies", "4", "-steps", "1", "-csv", filepath.Join(t.TempDir(), "none", "n.csv"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, errUsage) {
		t.Error(err)
	}
}

func TestCheckpointContainsTheWholeState(t *testing.T) {
	err := mpj.RunLocal(t.Context(), 1, func(w *mpj.World) error {
		r := newRing(w.Comm, 10, 1)
		if err := r.run(w, 3, 0.01, func(int) {}); err != nil {
			return err
		}
		var saved bytes.Buffer
		if err := r.s.save(&saved, 3); err != nil {
			return err
		}
		other := newSystem(10, 0, 1, 2)
		step, err := other.restore(&saved)
		if step != 3 || !reflect.DeepEqual(other, r.s) {
			t.Errorf("step %d, %+v, want %+v", step, other, r.s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
