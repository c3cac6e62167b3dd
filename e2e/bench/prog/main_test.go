package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// TestEveryItemReturnsAResult runs each test of the quick plan once.
func TestEveryItemReturnsAResult(t *testing.T) {
	for _, n := range []int{2, 4} {
		items := slices.DeleteFunc(plan.Of(n, true), func(i plan.Item) bool { return slices.Contains(plan.Kernels, i.Test) })
		for i := range items {
			items[i].Count = 1
			items[i].Bytes = min(items[i].Bytes, 1<<16)
		}
		outputs := make([]bytes.Buffer, n)
		err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
			return measureAll(w.Comm, items, &outputs[w.Rank()])
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := json.NewDecoder(&outputs[0])
		for _, item := range items {
			var got plan.Result
			if err := lines.Decode(&got); err != nil || got.Test != item.Test || got.Bytes != item.Bytes || got.Seconds <= 0 {
				t.Errorf("%s returned %+v, %v", item, got, err)
			}
			overlap := item.Test == plan.OverlapSend || item.Test == plan.OverlapRecv
			if (got.Overlap != nil) != overlap || (got.Allocs != nil) != (item.Test == plan.Latency) {
				t.Errorf("%s returned %+v", item, got)
			}
		}
		for rank := 1; rank < n; rank++ {
			if outputs[rank].Len() > 0 {
				t.Errorf("rank %d prints %s", rank, &outputs[rank])
			}
		}
	}
}

func TestProgramsAreNotMeasuredHere(t *testing.T) {
	err := mpj.RunLocal(context.Background(), 1, func(w *mpj.World) error {
		return measureAll(w.Comm, []plan.Item{{Test: plan.Kernels[0], Count: 1}}, new(bytes.Buffer))
	})
	if err == nil {
		t.Error("a NAS program was accepted as a test")
	}
}
