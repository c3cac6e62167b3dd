package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

func TestExpectedIsTheSumOfRanksForEachRound(t *testing.T) {
	for _, tc := range []struct {
		ranks, rounds int
		want          int64
	}{{1, 5, 0}, {2, 1, 1}, {3, 1, 3}, {4, 10, 60}} {
		if got := expected(tc.ranks, tc.rounds); got != tc.want {
			t.Errorf("%d ranks, %d rounds: %d, want %d", tc.ranks, tc.rounds, got, tc.want)
		}
	}
}

// TestTokenCollectsEveryRank checks the token at every rank. The last rank passes the final value to
// rank 0.
func TestTokenCollectsEveryRank(t *testing.T) {
	const rounds = 20
	for _, n := range []int{1, 2, 3, 8} {
		tokens := make([]int64, n)
		err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) (err error) {
			tokens[w.Rank()], err = pass(w.Comm, rounds)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for rank, got := range tokens {
			want := expected(n, rounds-1) + int64(rank*(rank+1)/2)
			if rank == 0 {
				want = expected(n, rounds)
			}
			if got != want {
				t.Errorf("rank %d of %d has token %d, want %d", rank, n, got, want)
			}
		}
	}
}

func TestRankZeroPrintsHops(t *testing.T) {
	for n, want := range map[int]string{
		1: "ranks    1\nrounds   50\nhops     50\ntoken    0, as expected\ntime     ",
		3: "ranks    3\nrounds   50\nhops     150\ntoken    150, as expected\ntime     ",
	} {
		stdout := make([]bytes.Buffer, n)
		err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
			return run(w, []string{"50"}, &stdout[w.Rank()])
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := stdout[0].String(); !strings.HasPrefix(got, want) {
			t.Errorf("%d ranks printed\n%s", n, got)
		}
		for rank := 1; rank < n; rank++ {
			if stdout[rank].Len() > 0 {
				t.Errorf("rank %d printed %q, want no output", rank, stdout[rank].String())
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"0"}, {"-3"}, {"x"}, {""}, {"1", "2"}, {"1000000001"}, {"-h"}} {
		err := mpj.RunLocal(context.Background(), 1, func(w *mpj.World) error {
			return run(w, args, new(bytes.Buffer))
		})
		if !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
	if got, err := parse(nil); got != defaultRounds || err != nil {
		t.Errorf("parse without arguments returned %d rounds, %v", got, err)
	}
}
