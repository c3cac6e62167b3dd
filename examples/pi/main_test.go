package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

func TestRectanglesConverge(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 100_000} {
		// The error of the midpoint rule for this integral is at most 1/(12 n²).
		if got, limit := math.Abs(rectangles(0, n, n)-math.Pi), 1/(12*float64(n)*float64(n))+1e-12; got > limit {
			t.Errorf("%d intervals: error %g, want at most %g", n, got, limit)
		}
	}
}

func TestSharesPartitionTheIntervals(t *testing.T) {
	for _, n := range []int{1, 2, 100, maxIntervals} {
		for _, ranks := range []int{1, 2, 3, 7, 101} {
			next := 0
			for rank := range ranks {
				from, to := share(n, rank, ranks)
				if from != next || to-from < n/ranks || to-from > n/ranks+1 {
					t.Errorf("rank %d of %d has %d to %d of %d, want the first to be %d", rank, ranks, from, to, n, next)
				}
				next = to
			}
			if next != n {
				t.Errorf("%d ranks have %d of %d intervals", ranks, next, n)
			}
		}
	}
}

// runAll runs the program with n ranks and returns the output of each rank.
func runAll(n int, args ...string) ([]string, error) {
	stdout := make([]bytes.Buffer, n)
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &stdout[w.Rank()])
	})
	printed := make([]string, n)
	for rank := range printed {
		printed[rank] = stdout[rank].String()
	}
	return printed, err
}

func TestRankZeroPrintsPi(t *testing.T) {
	for _, n := range []int{1, 3} {
		got, err := runAll(n, "1000000")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got[0], "pi is about 3.14159265358") || !strings.Contains(got[0], fmt.Sprintf("\nranks       %d\n", n)) {
			t.Errorf("%d ranks printed %q", n, got[0])
		}
		if others := strings.Join(got[1:], ""); others != "" {
			t.Errorf("%d ranks: the other ranks printed %q", n, others)
		}
	}
}

func TestMoreRanksThanIntervals(t *testing.T) {
	got, err := runAll(5, "2")
	if err != nil || !strings.HasPrefix(got[0], "pi is about 3.16235294117647") {
		t.Errorf("rank 0 printed %q, %v", got[0], err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"0"}, {"-1"}, {"many"}, {""}, {"1e6"}, {"1", "2"}, {"1000000000000001"}, {"-h"}} {
		if got, err := runAll(2, args...); !errors.Is(err, errUsage) || got[0] != "" {
			t.Errorf("arguments %q: %q, %v", args, got[0], err)
		}
	}
	if got, err := parse(nil); err != nil || got != defaultIntervals {
		t.Errorf("parse without arguments returned %d intervals, %v", got, err)
	}
}
