package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A controlStream is a control stream of the job's submitter: the first one, or one by which the submitter
// has reconnected.
//
//	submitter                               peer
//	    |== first stream, broken ========... |  submitter.go: the job continues
//	    |-- Resume(job, heard) ------------->|  new stream
//	    |<-- Resumed ------------------------|
//	    |<-- messages after heard -----------|
//	    |<-- output not acknowledged --------|  numbered, so duplicates are recognized
//	    |-- Begin, View, Emitted, ... ------>|  may repeat what has arrived; repetitions have no effect
//	    |-- Join(next generation) ---------->|  the submitter no longer counts as silent
//
// A new process of the submitter sends the same messages, and has heard none before.
type controlStream struct {
	network.Stream
	out     chan *jobpb.FromPeer
	pace    func(ctx context.Context, n int) error // delays output
	written chan struct{}                          // closed when the writer has finished
}

// A control is this peer's end of the communication with a job's submitter: all messages to it, in order, and
// the stream on which they are sent.
type control struct {
	stream   *controlStream    // nil: none
	messages []*jobpb.FromPeer // all messages except output, from the first: they may have to be sent again
	sent     int               // how many of them have been sent
	head     *jobpb.FromPeer   // message offered to the writer
	last     *jobpb.FromPeer   // last message of the job; nil: none
}

// maxRecorded bounds the messages that this peer keeps for a submitter. Each process causes a few. Further
// messages report progress during hours of staging, and at most one failure of each peer per generation of
// the detector's group.
const maxRecorded = 1 << 18

// queue queues a message to the submitter.
func (c *control) queue(m *jobpb.FromPeer) error {
	if len(c.messages) >= maxRecorded {
		return fmt.Errorf("more than %d messages to the submitter", maxRecorded)
	}
	c.messages = append(c.messages, m)
	return nil
}

// next returns the next message to the submitter, and the channel that takes it. Queued messages come before
// output, which the given function returns. The channel is nil if there is no message, or no stream.
func (c *control) next(output func() *jobpb.FromPeer) (chan<- *jobpb.FromPeer, *jobpb.FromPeer) {
	switch {
	case c.stream == nil:
		return nil, nil
	case c.head != nil:
	case c.sent < len(c.messages):
		c.head = c.messages[c.sent]
		c.sent++
	default:
		c.head = output()
	}
	if c.head == nil {
		return nil, nil
	}
	return c.stream.out, c.head
}

// detach resets the current stream, if there is one.
func (c *control) detach() {
	if c.stream != nil {
		c.stream.Reset()
		close(c.stream.out)
		c.stream, c.head = nil, nil
	}
}

// resume makes this peer send the messages after the first heard ones again.
func (c *control) resume(heard int) {
	c.head, c.sent = resumed(nil, len(c.messages)), heard
}

// leave sends the job's last message, if there is one, and closes the stream cleanly. If ctx ends first, it
// resets the stream.
func (c *control) leave(ctx context.Context) {
	a := c.stream
	if a == nil {
		return
	}
	if c.last != nil {
		select {
		case a.out <- c.last:
		case <-ctx.Done():
		}
	}
	close(a.out)
	stop := context.AfterFunc(ctx, func() { a.Reset() })
	<-a.written
	stop()
	a.Close()
}

// write sends the job's messages until out is closed. It delays output, except after ctx has ended. After an
// error it resets the stream, which the reader notices, and only drains out.
func (a *controlStream) write(ctx context.Context) {
	defer close(a.written)
	w := jobpb.NewWriter(a)
	broken := false
	for m := range a.out {
		if broken {
			continue
		}
		_ = a.pace(ctx, len(m.GetOutput().GetData()))
		a.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := w.Write(m); err != nil {
			broken = true
			a.ResetWithError(jobpb.Unwritten)
		}
	}
}

var errClosed = errors.New("closed")

var errNewAttempt = errors.New("the submitter has started a new attempt")

var errOver = errors.New("the submitter has ended this peer's part of the job")

var errReplaced = errors.New("another process of the submitter has resumed the job")
