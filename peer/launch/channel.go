package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
)

// A channelID names a channel. There is one at a time: a process that opens it
// again has given up the one before.
type channelID struct{ from, to view.Process }

const (
	maxOpening = 1024 // bytes of the messages that open a channel

	// dialTimeout is how long a peer tries to reach another before it tells its
	// process that there is no channel. The process may ask again.
	dialTimeout = 5 * time.Second

	dialPause = 200 * time.Millisecond // between two tries, at first
)

// open answers a process that wants a channel.
func (j *job) open(p *process, to view.Process) {
	if err := j.openable(channelID{p.id, to}); err != nil {
		p.refuse(to, err)
		return
	}
	if q, ok := j.local[to]; ok {
		j.openLocal(p, q)
		return
	}
	ctx := j.replace(channelID{p.id, to})
	j.running.Add(1)
	go j.openRemote(ctx, p, to)
}

// openable says whether there may be a channel: both processes are in the view
// and the membership table, and the receiver, if it is here, still runs.
func (j *job) openable(c channelID) error {
	for _, p := range []view.Process{c.from, c.to} {
		if _, ok := j.members.peerOf[p]; !ok || j.view.State(p) == view.Failed {
			return fmt.Errorf("process %v is not in the view", p)
		}
	}
	if q, ok := j.local[c.to]; ok && q.exit != nil {
		return fmt.Errorf("process %v has ended", c.to)
	}
	return nil
}

func (p *process) refuse(to view.Process, err error) {
	p.tell(proclink.Message{Type: proclink.Refused, Process: &to, Text: clip(err.Error())}, nil)
}

// replace breaks the channel c if there is one, and returns the context of the
// next.
func (j *job) replace(c channelID) context.Context {
	if breakOff, ok := j.channels[c]; ok {
		breakOff()
	}
	ctx, cancel := context.WithCancel(j.ctx)
	j.channels[c] = cancel
	return ctx
}

// openRemote joins a process of this peer with one of another, and carries its
// bytes.
func (j *job) openRemote(ctx context.Context, p *process, to view.Process) {
	defer j.running.Done()
	stream, err := j.dial(ctx, j.members.peerOf[to], &pb.Open{Job: j.spec.ID, From: pbProcess(p.id), To: pbProcess(to)})
	if err != nil {
		err = fmt.Errorf("open channel to process %v: %w", to, err)
		j.do(func() { p.refuse(to, err) })
		return
	}
	ours, theirs, err := socketPair()
	if err != nil {
		stream.Reset()
		j.do(func() { p.refuse(to, err) })
		return
	}
	if !j.do(func() { p.tell(proclink.Message{Type: proclink.Channel, Process: &to, Kind: proclink.Stream}, theirs) }) {
		theirs.Close()
	}
	carry(ctx, stream, ours)
}

// socketPair returns a connected pair: one end to be bridged, one to be given
// to a process.
func socketPair() (ours socket, theirs *os.File, err error) {
	a, b, err := proclink.SocketPair()
	if err != nil {
		return socket{}, nil, err
	}
	defer a.Close()
	c, err := net.FileConn(a)
	if err != nil {
		b.Close()
		return socket{}, nil, err
	}
	return socket{c.(*net.UnixConn)}, b, nil
}

// dial opens the stream of a channel, and tries again while the other peer
// cannot be reached.
func (j *job) dial(ctx context.Context, peer p2ppeer.ID, open *pb.Open) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for pause := dialPause; ; pause *= 2 {
		stream, err := j.service.host.NewStream(ctx, peer, ChannelProtocol)
		if err == nil {
			if err = ask(ctx, stream, open); err != nil {
				stream.Reset()
				return nil, err
			}
			return stream, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// ask sends the opening of a channel and waits for the answer.
func ask(ctx context.Context, stream network.Stream, open *pb.Open) error {
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(open); err != nil {
		return err
	}
	var answer pb.Answer
	if err := pbio.NewDelimitedReader(stream, maxOpening).ReadMsg(&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return nil
}

// serveChannel answers another peer that opens a channel to a process here, and
// carries its bytes.
func (s *Service) serveChannel(stream network.Stream) {
	remote := stream.Conn().RemotePeer()
	stop := context.AfterFunc(s.ctx, func() { stream.Reset() })
	defer stop()
	stream.SetDeadline(time.Now().Add(dialTimeout))
	var open pb.Open
	if err := pbio.NewDelimitedReader(stream, maxOpening).ReadMsg(&open); err != nil {
		stream.Reset()
		return
	}
	j, ok := s.lookup(open.Job)
	if !ok {
		answer(stream, errors.New("job is not here"))
		return
	}
	var ctx context.Context
	var ours socket
	var err error
	taken := make(chan struct{})
	if !j.do(func() { ctx, ours, err = j.accept(remote, &open); close(taken) }) {
		answer(stream, errors.New("job has ended here"))
		return
	}
	<-taken
	if err != nil {
		s.config.Log.Debug().Stringer("asked_by", remote).Str("job", open.Job).Err(err).Msg("channel refused")
		answer(stream, err)
		return
	}
	defer j.running.Done()
	if !answer(stream, nil) {
		ours.Close()
		return
	}
	stream.SetDeadline(time.Time{})
	carry(ctx, ours, stream)
}

// answer says whether a channel is open. One that is not ends here.
func answer(stream network.Stream, refusal error) bool {
	err := pbio.NewDelimitedWriter(stream).WriteMsg(&pb.Answer{Error: clip(text(refusal))})
	switch {
	case err != nil:
		stream.Reset()
	case refusal != nil:
		stream.Close()
	}
	return err == nil && refusal == nil
}

// accept gives the receiving process its end of a channel that another peer
// opens. If there is no error the caller is counted as running.
func (j *job) accept(remote p2ppeer.ID, open *pb.Open) (context.Context, socket, error) {
	c := channelID{viewProcess(open.From), viewProcess(open.To)}
	if err := j.openable(c); err != nil {
		return nil, socket{}, err
	}
	q, ok := j.local[c.to]
	if !ok {
		return nil, socket{}, fmt.Errorf("process %v does not run here", c.to)
	}
	if j.members.peerOf[c.from] != remote {
		return nil, socket{}, fmt.Errorf("process %v does not run at %s", c.from, remote)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, socket{}, err
	}
	q.tell(proclink.Message{Type: proclink.Accept, Process: &c.from, Kind: proclink.Stream}, theirs)
	j.running.Add(1)
	return j.replace(c), ours, nil
}

func pbProcess(p view.Process) *pb.Process {
	return &pb.Process{Rank: uint32(p.Rank), Replica: uint32(p.Replica)}
}

func viewProcess(p *pb.Process) view.Process {
	return view.Process{Rank: int(p.GetRank()), Replica: int(p.GetReplica())}
}
