package launch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// The asking side of a channel to a process of another peer.

// A route is how a peer has reached another peer. Exactly one of conn, stream and err is set.
type route struct {
	channelPath
	why    string
	rtt    time.Duration // to the other peer; 0: not measured
	conn   *net.TCPConn
	stream network.Stream
	err    error
}

// openRemote connects a process of this peer to a process of another peer. If the processes cannot
// communicate directly, it forwards the bytes.
func (j *job) openRemote(ctx context.Context, p *process, to view.Process, peer p2ppeer.ID, s situation) {
	defer j.running.Done()
	open := &pb.Open{Job: j.spec.ID, From: pbProcess(p.id), To: pbProcess(to)}
	w := j.reach(ctx, peer, open, s, j.kinds)
	if w.err == nil {
		j.do(func() { j.reached(channelID{p.id, to}, peer, w) })
		if w.conn != nil {
			w.err = j.handOver(ctx, p, proclink.Message{Type: proclink.Channel, Process: &to}, w.conn)
		} else {
			w.err = j.bridge(ctx, p, to, w.stream)
		}
	}
	if w.err != nil {
		j.do(func() { p.refuse(to, fmt.Errorf("open channel to process %v: %w", to, w.err)) })
	}
}

// bridge hands p its end of a channel and forwards its bytes.
func (j *job) bridge(ctx context.Context, p *process, to view.Process, stream network.Stream) error {
	ours, theirs, err := openIn()
	if err != nil {
		stream.Reset()
		return err
	}
	if !j.do(func() { p.send(proclink.Message{Type: proclink.Channel, Process: &to, Kind: proclink.Stream}, theirs) }) {
		theirs.Close()
	}
	carry(ctx, streamEnd{stream}, p.paced(ctx, ours))
	return nil
}

// handOver hands p a TCP connection to the process that m names. This peer keeps no copy, so the connection
// ends with the processes. ctx is the channel's context.
func (j *job) handOver(ctx context.Context, p *process, m proclink.Message, conn *net.TCPConn) error {
	file, err := conn.File()
	conn.Close()
	if err != nil {
		return err
	}
	m.Kind = proclink.TCP
	if !j.do(func() { j.whenBegun(func() { j.give(ctx, p, m, file) }) }) {
		file.Close()
	}
	return nil
}

func (j *job) give(ctx context.Context, p *process, m proclink.Message, file *os.File) {
	m.Key = j.keyOf(*m.Process)
	if m.Key != nil && ctx.Err() == nil {
		p.send(m, file)
		return
	}
	file.Close()
	if m.Type == proclink.Channel {
		p.refuse(*m.Process, errors.New("the channel is no longer needed"))
	}
}

// whenBegun calls f once the keys of all processes are known. Another peer may learn them earlier.
func (j *job) whenBegun(f func()) {
	if j.keys == nil && j.ctx.Err() == nil {
		j.waiting = append(j.waiting, f)
		return
	}
	f()
}

// reach finds a way to the processes of peer. It tries the allowed kinds in order until one succeeds.
func (j *job) reach(ctx context.Context, peer p2ppeer.ID, open *pb.Open, s situation, allowed []proclink.Kind) route {
	if s.noDirect == "" {
		s.noDirect = j.service.obstacle(peer)
	}
	for {
		w := route{}
		w.kind, w.why = choose(s, allowed)
		if w.kind == "" {
			w.err = errors.New(w.why)
			return w
		}
		open.Tcp, open.Token = w.kind == proclink.TCP, nil
		if open.Tcp {
			open.Token = entrance.NewToken()
		}
		stream, answer, err := j.dial(ctx, peer, open)
		switch {
		case err != nil:
			w.err = err
			return w
		case w.kind == proclink.Stream:
			w.stream = stream
			w.setConnection(connection.Of(j.service.host, stream.Conn(), j.service.config.Punches))
			return w
		}
		stream.Close()
		if w.conn, err = entrance.Connect(ctx, answer.Addrs, j.service.mayDial(peer), open.Token); err == nil {
			w.how = connection.Direct
			return w
		}
		j.log.Debug().Err(err).Stringer("peer", peer).Msg("no direct connection for processes")
		if s.noDirect = notDirect; ctx.Err() == nil { // a failure because the job ends tells nothing about later attempts
			j.service.avoidDirect(peer, pauseAfter(err))
		}
	}
}

// notDirect is the reason reported for a peer that could not be reached directly. It omits the result for
// each address: other peers name the addresses, and could otherwise scan this machine's network.
const notDirect = "the connection attempt failed"

var errNotReached = errors.New("its peer cannot be reached")

// mayDial returns the filter for addresses at which this peer connects to another one for its processes.
func (s *Service) mayDial(peer p2ppeer.ID) func(netip.Addr) bool {
	for _, c := range s.host.Network().ConnsToPeer(peer) {
		s.config.Dials.Met(c)
	}
	return func(at netip.Addr) bool { return s.config.Dials.May(peer, at) }
}

// setConnection records the connection that a stream uses.
func (w *route) setConnection(c connection.Connection) {
	w.how, w.relay = c.Way, c.Relay
	if why := c.Outline(); why != "" {
		w.why += "; " + why
	}
}

// dial opens the stream of a channel. It retries while the other peer cannot be reached.
func (j *job) dial(ctx context.Context, peer p2ppeer.ID, open *pb.Open) (network.Stream, *pb.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for pause := dialPause; ; pause *= 2 {
		redial.Allow(j.service.host, peer)
		stream, err := j.service.host.NewStream(network.WithAllowLimitedConn(ctx, "channel"), peer, ChannelProtocol)
		if err == nil {
			answer, err := ask(ctx, stream, open)
			if err != nil {
				stream.Reset()
				return nil, nil, err
			}
			return stream, answer, nil
		}
		select {
		case <-ctx.Done():
			j.log.Debug().Err(err).Stringer("peer", peer).Msg("peer not reached for a channel")
			return nil, nil, errNotReached
		case <-time.After(pause/2 + rand.N(pause)): // random, since the other peer may have dialed at the same instant
		}
	}
}

// ask sends the opening message of a channel and waits for the answer.
func ask(ctx context.Context, stream network.Stream, open *pb.Open) (*pb.Answer, error) {
	stop := context.AfterFunc(ctx, func() { stream.Reset() })
	defer stop()
	if err := pbio.NewDelimitedWriter(stream).WriteMsg(open); err != nil {
		return nil, err
	}
	answer := new(pb.Answer)
	if err := pbio.NewDelimitedReader(stream, maxOpening).ReadMsg(answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return answer, nil
}

// pauseAfter returns how long a peer is not tried directly after a failure. A listener that does not know
// the token may have started only a moment ago, or may be about to end.
func pauseAfter(err error) time.Duration {
	if errors.Is(err, entrance.ErrRejected) {
		return rejectedPause
	}
	return directPause
}

// avoidDirect records that a peer cannot be reached directly, so that the next channels do not try.
func (s *Service) avoidDirect(peer p2ppeer.ID, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, until := range s.obstacles {
		if time.Now().After(until) {
			delete(s.obstacles, p)
		}
	}
	s.obstacles[peer] = time.Now().Add(pause)
}

// retryDirect lets the next channel to a peer try a direct connection again.
func (s *Service) retryDirect(peer p2ppeer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.obstacles, peer)
}

// obstacle returns why a recent attempt to reach a peer directly failed, or "".
func (s *Service) obstacle(peer p2ppeer.ID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := s.obstacles[peer]; ok && time.Now().Before(until) {
		return notDirect
	}
	return ""
}
