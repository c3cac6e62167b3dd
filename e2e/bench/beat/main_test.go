package main

import (
	"context"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// TestEveryBeatArrives runs beat with three ranks for a moment.
func TestEveryBeatArrives(t *testing.T) {
	err := mpj.RunLocal(context.Background(), 3, func(w *mpj.World) error {
		if w.Rank() == 0 {
			return listen(w.Comm, 20)
		}
		return send(w.Comm, 20)
	})
	if err != nil {
		t.Error(err)
	}
}
