package switchboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
)

// The answering side of a channel from a process of another peer.

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

// Accept prepares a channel that another peer opens.
func (b *Board) Accept(r Request) (Acceptance, error) {
	from, a := r.stream.Conn(), Acceptance{request: r, answer: &pb.Answer{}}
	c := channelID{viewProcess(r.open.From), viewProcess(r.open.To)}
	err := b.openable(c)
	q, here := b.ports[c.to]
	switch {
	case err != nil:
	case !here:
		err = fmt.Errorf("process %v does not run here", c.to)
	case b.config.Table.PeerOf[c.from] != from.RemotePeer():
		err = fmt.Errorf("process %v does not run at %s", c.from, from.RemotePeer())
	case r.open.Tcp:
		a.answer.Direct = true
		a.answer.Addrs, err = b.acceptDirect(from, c, q, r.open)
		return a, err
	case !slices.Contains(b.kinds, proclink.Stream):
		err = errors.New("the other peer does not allow channels over streams")
	case r.open.Probe:
		return a, nil
	}
	if err != nil {
		return a, err
	}
	ours, theirs, err := openOut()
	if err != nil {
		return a, err
	}
	q.Send(proclink.Message{Type: proclink.Accept, Process: &c.from, Kind: proclink.Stream}, theirs)
	b.running.Add(1)
	a.ours, a.ctx, a.done = &ours, b.replace(c), b.running.Done
	return a, nil
}

// acceptDirect lets the other peer connect to the entrance, and returns the entrance's addresses. It returns
// none if the other peer cannot connect.
func (b *Board) acceptDirect(from network.Conn, c channelID, q *Port, open *pb.Open) ([]string, error) {
	if b.Entrance == nil || b.config.UploadLimited || !slices.Contains(b.kinds, proclink.TCP) {
		return nil, nil
	}
	ctx, arrived := b.ctx, func(conn net.Conn) { conn.Close() }
	if !open.Probe {
		ctx = b.replace(c)
		arrived = func(conn net.Conn) {
			b.handOver(ctx, q, proclink.Message{Type: proclink.Accept, Process: &c.from}, conn.(*net.TCPConn))
		}
	}
	if err := b.Entrance.Expect(ctx, open.Token, arrived); err != nil {
		return nil, err
	}
	return b.Entrance.Addresses(from, b.Host.Addrs()), nil
}
