package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// sequential computes some batches without communication.
func sequential(batches int) (total sums, counts annuli) {
	for k := range batches {
		s := batch(k, &counts)
		total.x += s.x
		total.y += s.y
	}
	return total, counts
}

func TestVerifyRefusesOtherSums(t *testing.T) {
	for name, c := range classes {
		for _, factor := range []float64{1 + 2*epsilon, 1 - 2*epsilon, -1} {
			if s := (sums{c.expected.x * factor, c.expected.y}); c.verify(s) {
				t.Errorf("class %s accepts the sums %v in place of %v", name, s, c.expected)
			}
		}
	}
}

func TestSharesPartitionTheBatches(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7, 256, 1000} {
		next := 0
		for rank := range ranks {
			from, to := share(256, rank, ranks)
			if from != next || to < from {
				t.Errorf("rank %d of %d has batches %d to %d, want the first to be %d", rank, ranks, from, to, next)
			}
			next = to
		}
		if next != 256 {
			t.Errorf("%d ranks have %d batches, want 256", ranks, next)
		}
	}
}

// TestReport runs class S and compares the report with NPB's own counts. Only rank 0 may print.
func TestReport(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			stdout, stderr := make([]bytes.Buffer, n), make([]bytes.Buffer, n)
			err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
				return kernel.Execute(w, []string{"s"}, &stdout[w.Rank()], &stderr[w.Rank()])
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"\n Class        = S\n", "\n Verification = SUCCESSFUL\n", "\n Gaussian     = 13176389 pairs\n",
				"\n        0 ..  1       6140517\n", "\n        5 ..  6            17\n", fmt.Sprintf("\n Ranks        = %d\n", n),
			} {
				if !strings.Contains(stdout[0].String(), want) {
					t.Errorf("%q is not in the report:\n%s", want, stdout[0].String())
				}
			}
			if got := stderr[0].String(); !strings.HasPrefix(got, "ep: 10 % done\n") || !strings.HasSuffix(got, "ep: 100 % done\n") {
				t.Errorf("the progress output is\n%s", got)
			}
			for rank := 1; rank < n; rank++ {
				if stdout[rank].Len()+stderr[rank].Len() > 0 {
					t.Errorf("rank %d wrote %q and %q, want no output", rank, stdout[rank].String(), stderr[rank].String())
				}
			}
		})
	}
}

// TestSumsAreTheSameForEveryNumberOfRanks compares the sums to the last bit.
func TestSumsAreTheSameForEveryNumberOfRanks(t *testing.T) {
	const batches = 8
	wantSums, wantCounts := sequential(batches)
	if total, counts, err := compute(&npb.Run{Progress: io.Discard}, batches); total != wantSums || counts != wantCounts || err != nil {
		t.Errorf("without a world, compute returned %v, %v, %v; want %v, %v", total, counts, err, wantSums, wantCounts)
	}
	for _, n := range []int{1, 2, 3, 5, 11} {
		err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
			total, counts, err := compute(&npb.Run{World: w, Progress: io.Discard}, batches)
			if err == nil && w.Rank() == 0 && (total != wantSums || counts != wantCounts) {
				err = fmt.Errorf("the sums are %v and the counts %v; want %v, %v", total, counts, wantSums, wantCounts)
			}
			return err
		})
		if err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}
