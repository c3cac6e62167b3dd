package switchboard

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
)

// A Request is another peer's request for a channel to a process here.
type Request struct {
	Job    string
	stream network.Stream
	open   *pb.Open
}

// ReadRequest reads the request from a stream that another peer has opened.
func ReadRequest(stream network.Stream) (Request, error) {
	stream.SetDeadline(time.Now().Add(dialTimeout))
	var open pb.Open
	err := pbio.NewDelimitedReader(stream, maxOpening).ReadMsg(&open)
	return Request{open.Job, stream, &open}, err
}

// Refuse answers that there is no such channel.
func (r Request) Refuse(reason string) { r.answer(&pb.Answer{Error: reason}) }

// answer sends the answer, and reports whether it was sent. It closes a stream that will not carry the
// channel.
func (r Request) answer(m *pb.Answer) bool {
	err := pbio.NewDelimitedWriter(r.stream).WriteMsg(m)
	switch {
	case err != nil:
		r.stream.Reset()
	case m.Error != "" || m.Direct:
		r.stream.Close()
	}
	return err == nil
}

// An Acceptance is the board's decision about a channel.
type Acceptance struct {
	request Request
	answer  *pb.Answer
	ours    *outPipe        // nil: this peer does not forward the channel's bytes
	ctx     context.Context // context of the forwarding, if ours is set
	done    func()
}

// Serve answers the other peer, and forwards the channel's bytes if necessary. It must be called once for each
// Acceptance, on a goroutine of its own.
func (a Acceptance) Serve() {
	answered := a.request.answer(a.answer)
	if a.ours == nil {
		return
	}
	defer a.done()
	if !answered {
		a.ours.Close()
		return
	}
	a.request.stream.SetDeadline(time.Time{})
	carry(a.ctx, a.ours, streamEnd{a.request.stream})
}
