package protected_test

import (
	"context"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// TestV4FlushDoesNotWaitForAnUnreportedEnd ends a process without a change of the view, as if its
// peer did not report the end. The process no longer answers.
func TestV4FlushDoesNotWaitForAnUnreportedEnd(t *testing.T) {
	defer protected.SetAnswerTimeout(50 * time.Millisecond)()
	for name, config := range map[string]localworld.Config{
		"self":    {Ranks: 2, Replicas: 2},
		"rings":   {Ranks: 2, Replicas: 2, Rings: true},
		"sockets": {Ranks: 2, Replicas: 2, Sockets: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			job, ended := localworld.New(ctx, config), make(chan struct{})
			err := job.Run(func(p view.Process, e *engine.Engine) error {
				other := 1 - p.Rank
				if _, err := e.Sendrecv(context2, other, 6, nil, other, 6, nil); err != nil {
					return err
				}
				if p == (view.Process{Rank: 0, Replica: 1}) {
					defer close(ended)
					defer e.Close()
					return e.Flush()
				}
				<-ended
				if err := e.Flush(); err != nil {
					return err
				}
				job.Finish(p)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
