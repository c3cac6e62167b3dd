package launch

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

// An acceptance is the decision of a job's goroutine about a channel.
type acceptance struct {
	ctx    context.Context // context of the forwarding, if ours is set
	ours   *outPipe
	answer *pb.Answer
	err    error
}

// serveChannel answers another peer that opens a channel to a process here, and forwards the channel's
// bytes if necessary.
func (s *Service) serveChannel(stream network.Stream) {
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	defer stop()
	stream.SetDeadline(time.Now().Add(dialTimeout))
	var open pb.Open
	if err := pbio.NewDelimitedReader(stream, maxOpening).ReadMsg(&open); err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "channel not opened", err)
		stream.Reset()
		return
	}
	j, ok := s.lookup(open.Job)
	if !ok {
		answer(stream, &pb.Answer{Error: "job is not here"})
		return
	}
	a, ok := query(j, func() acceptance { return j.accept(stream.Conn(), &open) })
	if !ok {
		answer(stream, &pb.Answer{Error: "job has ended here"})
		return
	}
	if a.err != nil {
		s.config.Log.Debug().Stringer("asked_by", stream.Conn().RemotePeer()).Str("job", open.Job).Err(a.err).Msg("channel refused")
		a.answer = &pb.Answer{Error: text(a.err)}
	}
	answered := answer(stream, a.answer)
	if a.ours == nil {
		return
	}
	defer j.running.Done()
	if !answered {
		a.ours.Close()
		return
	}
	stream.SetDeadline(time.Time{})
	carry(a.ctx, a.ours, streamEnd{stream})
}

// answer sends the answer to a channel request, and reports whether it was sent. It closes a stream that
// will not carry the channel.
func answer(stream network.Stream, m *pb.Answer) bool {
	err := pbio.NewDelimitedWriter(stream).WriteMsg(m)
	switch {
	case err != nil:
		stream.Reset()
	case m.Error != "" || m.Direct:
		stream.Close()
	}
	return err == nil
}

// accept prepares a channel that another peer opens. If the acceptance has an end of the channel, the
// caller is added to j.running.
func (j *job) accept(from network.Conn, open *pb.Open) acceptance {
	c := channelID{viewProcess(open.From), viewProcess(open.To)}
	err := j.openable(c)
	q, here := j.local[c.to]
	switch {
	case err != nil:
	case !here:
		err = fmt.Errorf("process %v does not run here", c.to)
	case j.members.peerOf[c.from] != from.RemotePeer():
		err = fmt.Errorf("process %v does not run at %s", c.from, from.RemotePeer())
	case open.Tcp:
		return j.acceptDirect(from, c, q, open)
	case !slices.Contains(j.kinds, proclink.Stream):
		err = errors.New("the other peer does not allow channels over streams")
	case open.Probe:
		return acceptance{answer: &pb.Answer{}}
	}
	if err != nil {
		return acceptance{err: err}
	}
	ours, theirs, err := openOut()
	if err != nil {
		return acceptance{err: err}
	}
	q.send(proclink.Message{Type: proclink.Accept, Process: &c.from, Kind: proclink.Stream}, theirs)
	j.running.Add(1)
	return acceptance{ctx: j.replace(c), ours: &ours, answer: &pb.Answer{}}
}

// acceptDirect lets the other peer connect to the entrance. If this is not possible, the answer has no
// addresses.
func (j *job) acceptDirect(from network.Conn, c channelID, q *process, open *pb.Open) acceptance {
	e := j.service.entrance
	if e == nil || j.limitsUpload() || !slices.Contains(j.kinds, proclink.TCP) {
		return acceptance{answer: &pb.Answer{Direct: true}}
	}
	ctx, arrived := j.ctx, func(conn net.Conn) { conn.Close() }
	if !open.Probe {
		ctx = j.replace(c)
		arrived = func(conn net.Conn) {
			j.handOver(ctx, q, proclink.Message{Type: proclink.Accept, Process: &c.from}, conn.(*net.TCPConn))
		}
	}
	if err := e.Expect(ctx, open.Token, arrived); err != nil {
		return acceptance{err: err}
	}
	return acceptance{answer: &pb.Answer{Direct: true, Addrs: e.Addresses(from, j.service.host.Addrs())}}
}
