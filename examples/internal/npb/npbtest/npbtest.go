// Package npbtest runs kernels as several ranks within a test.
package npbtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// timeLimit ends tests that hang.
const timeLimit = time.Minute

// Verify runs class S of k as n ranks, for each n. It fails t unless rank 0, and no other rank,
// reports a result that NPB's own verification accepts.
func Verify(t *testing.T, k npb.Kernel, ranks ...int) {
	t.Helper()
	for _, n := range ranks {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			stdout := make([]bytes.Buffer, n)
			Run(t, n, func(w *mpj.World) error {
				return k.Execute(w, []string{"-class", "S", "-times"}, &stdout[w.Rank()], &bytes.Buffer{})
			})
			for _, want := range []string{" Class        = S\n", fmt.Sprintf(" Ranks        = %d\n", n), " Verification = SUCCESSFUL\n"} {
				if !strings.Contains(stdout[0].String(), want) {
					t.Errorf("no %q in the report:\n%s", want, stdout[0].String())
				}
			}
			for rank := 1; rank < n; rank++ {
				if stdout[rank].Len() > 0 {
					t.Errorf("rank %d writes %q", rank, stdout[rank].String())
				}
			}
		})
	}
}

// Run runs program as n ranks and fails t when one returns an error.
func Run(t *testing.T, n int, program func(*mpj.World) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	if err := mpj.RunLocal(ctx, n, program); err != nil {
		t.Fatalf("%d ranks: %v", n, err)
	}
}
