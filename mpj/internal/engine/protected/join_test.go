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

// TestNewReplicaReplaysALongMessageLog runs a new replica whose program first receives the last
// message of its rank's message log. The replica must reach that message although the log exceeds
// the limit of unreceived messages. The synchronous sends of its rank, which were matched long ago,
// must end.
func TestNewReplicaReplaysALongMessageLog(t *testing.T) {
	defer protected.SetReplayLimit(1 << 20)()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const messages, size = 80, 100_000
	job := localworld.New(ctx, localworld.Config{Ranks: 2, Replicas: 2, Heal: t.TempDir()})
	joined := make(chan uint64, 1)
	finish := func(p view.Process, e *engine.Engine, err error) error {
		if err == nil {
			err = e.Flush()
		}
		job.Finish(p)
		return err
	}
	err := job.Run(func(p view.Process, e *engine.Engine) error {
		buf := make([]byte, size)
		if p.Rank == 0 {
			var sends []*engine.Request
			for i := range messages {
				r, err := e.Isend(256, 1, int32(i), buf, engine.Standard)
				if err != nil {
					return err
				}
				sends = append(sends, r)
			}
			if err := waitAll(e, sends...); err != nil {
				return err
			}
			_, err := e.Recv(256, 1, 0, nil)
			return finish(p, e, err)
		}
		for i := messages - 1; i >= 0; i-- {
			if _, err := e.Recv(256, 0, int32(i), buf); err != nil {
				return err
			}
		}
		if p.Replica == 0 {
			_, err := job.Join(1, func(_, bytes uint64) { joined <- bytes })
			if err != nil {
				return err
			}
		}
		if p.Replica < 2 {
			select {
			case got := <-joined:
				joined <- got
				if got != messages*size {
					t.Errorf("%d bytes were replayed to the new replica, want %d", got, messages*size)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return finish(p, e, e.Send(256, 0, 0, nil, engine.Synchronous))
	})
	if err != nil {
		t.Fatal(err)
	}
}
