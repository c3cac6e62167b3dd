package protected_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const context2 = 2 // a context for messages

// A breakingSender breaks after a number of frames, and sends only a part of the last batch.
type breakingSender struct {
	channel.Sender
	left int
}

func (b *breakingSender) Send(frames ...frame.Frame) error {
	if b.left >= len(frames) {
		b.left -= len(frames)
		return b.Sender.Send(frames...)
	}
	b.Sender.Send(frames[:b.left]...)
	b.Sender.Close()
	return errors.New("broken by the test")
}

// TestFloodsPassEachOther checks that a sender waits when it is far ahead of its channel, and that
// two processes that flood each other do not block each other.
func TestFloodsPassEachOther(t *testing.T) {
	defer protected.SetFlowLimit(1 << 20)()
	for _, replicas := range []int{1, 2} {
		job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: replicas, Sockets: replicas == 2, Rings: replicas == 1})
		err := job.Run(func(p view.Process, e *engine.Engine) error {
			messages, size := 50, 64<<10 // together above the limit; each below the limit and within the credit
			if replicas == 1 {
				messages = 15 // the largest number that is sent eagerly
			}
			buf := make([]byte, size)
			for range messages {
				if err := e.Send(context2, 1-p.Rank, 0, buf, engine.Standard); err != nil {
					return err
				}
			}
			for range messages {
				if _, err := e.Recv(context2, 1-p.Rank, 0, buf); err != nil {
					return err
				}
			}
			if err := e.Flush(); err != nil {
				return err
			}
			job.Finish(p)
			return nil
		})
		if err != nil {
			t.Errorf("r=%d: %v", replicas, err)
		}
	}
}
