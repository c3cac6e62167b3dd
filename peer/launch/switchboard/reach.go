package switchboard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/redial"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// Both sides of a channel between processes of two peers.

const (
	maxOpening = 1024 // bytes of the messages that open a channel

	// dialTimeout bounds the time in which a peer tries to reach another peer, before it refuses the
	// channel to its process. The process may ask again.
	dialTimeout = 5 * time.Second

	dialPause = 200 * time.Millisecond // initial pause between two attempts

	directPause   = 30 * time.Second // pause after a failed direct connection
	rejectedPause = time.Second      // pause after a direct connection that the listener turned away
)

// ChannelProtocol is the protocol of the streams that open a channel.
const ChannelProtocol protocol.ID = "/p2pmpi/channel/1.0.0"

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
// communicate directly, it forwards the bytes. It runs on a goroutine of its own.
func (b *Board) openRemote(ctx context.Context, p *Port, to view.Process, peer p2ppeer.ID, s situation) {
	open := &pb.Open{Job: b.config.Job, From: pbProcess(p.id), To: pbProcess(to)}
	w := b.reach(ctx, peer, open, s, b.kinds)
	if w.err == nil {
		b.config.Do(func() { b.reached(channelID{p.id, to}, peer, w) })
		if w.conn != nil {
			w.err = b.handOver(ctx, p, proclink.Message{Type: proclink.Channel, Process: &to}, w.conn)
		} else {
			w.err = b.bridge(ctx, p, to, w.stream)
		}
	}
	if w.err != nil {
		b.config.Do(func() { p.Refuse(to, fmt.Errorf("open channel to process %v: %w", to, w.err)) })
	}
}

// bridge hands p its end of a channel and forwards its bytes.
func (b *Board) bridge(ctx context.Context, p *Port, to view.Process, stream network.Stream) error {
	ours, theirs, err := openIn()
	if err != nil {
		stream.Reset()
		return err
	}
	if !b.config.Do(func() { p.Send(proclink.Message{Type: proclink.Channel, Process: &to, Kind: proclink.Stream}, theirs) }) {
		theirs.Close()
	}
	var from source = ours // copies by itself, which is faster
	if b.config.UploadLimited {
		from = pacedSource{ours, ctx, p.Pace}
	}
	carry(ctx, streamEnd{stream}, from)
	return nil
}

// handOver hands p a TCP connection to the process that m names. This peer keeps no copy, so the connection
// ends with the processes. ctx is the channel's context.
func (b *Board) handOver(ctx context.Context, p *Port, m proclink.Message, conn *net.TCPConn) error {
	file, err := conn.File()
	conn.Close()
	if err != nil {
		return err
	}
	m.Kind = proclink.TCP
	if !b.config.Do(func() { b.whenBegun(func() { b.give(ctx, p, m, file) }) }) {
		file.Close()
	}
	return nil
}

func (b *Board) give(ctx context.Context, p *Port, m proclink.Message, file *os.File) {
	m.Key = b.table.key(*m.Process)
	if m.Key != nil && ctx.Err() == nil {
		p.Send(m, file)
		return
	}
	file.Close()
	if m.Type == proclink.Channel {
		p.Refuse(*m.Process, errors.New("the channel is no longer needed"))
	}
}

// reach finds a way to the processes of peer. It tries the allowed kinds in order until one succeeds.
func (b *Board) reach(ctx context.Context, peer p2ppeer.ID, open *pb.Open, s situation, allowed []proclink.Kind) route {
	if s.noDirect == "" {
		s.noDirect = b.obstacle(peer)
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
		stream, answer, err := b.dial(ctx, peer, open)
		switch {
		case err != nil:
			w.err = err
			return w
		case w.kind == proclink.Stream:
			w.stream = stream
			w.setConnection(connection.Of(b.Host, stream.Conn(), b.Punches))
			return w
		}
		stream.Close()
		if w.conn, err = entrance.Connect(ctx, answer.Addrs, b.mayDial(peer), open.Token); err == nil {
			w.how = connection.Direct
			return w
		}
		b.config.Log.Debug().Err(err).Stringer("peer", peer).Msg("no direct connection for processes")
		if s.noDirect = notDirect; ctx.Err() == nil { // a failure because the job ends tells nothing about later attempts
			b.avoidDirect(peer, pauseAfter(err))
		}
	}
}

// notDirect is the reason reported for a peer that could not be reached directly. It omits the result for
// each address: other peers name the addresses, and could otherwise scan this machine's network.
const notDirect = "the connection attempt failed"

var errNotReached = errors.New("its peer cannot be reached")

// mayDial returns the filter for addresses at which this peer connects to another one for its processes.
func (s *Service) mayDial(peer p2ppeer.ID) func(netip.Addr) bool {
	for _, c := range s.Host.Network().ConnsToPeer(peer) {
		s.Dials.Met(c)
	}
	return func(at netip.Addr) bool { return s.Dials.May(peer, at) }
}

// setConnection records the connection that a stream uses.
func (w *route) setConnection(c connection.Connection) {
	w.how, w.relay = c.Way, c.Relay
	if why := c.Outline(); why != "" {
		w.why += "; " + why
	}
}

// dial opens the stream of a channel. It retries while the other peer cannot be reached.
func (b *Board) dial(ctx context.Context, peer p2ppeer.ID, open *pb.Open) (network.Stream, *pb.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for pause := dialPause; ; pause *= 2 {
		redial.Allow(b.Host, peer)
		stream, err := b.Host.NewStream(network.WithAllowLimitedConn(ctx, "channel"), peer, ChannelProtocol)
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
			b.config.Log.Debug().Err(err).Stringer("peer", peer).Msg("peer not reached for a channel")
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
	if s.obstacles == nil {
		s.obstacles = make(map[p2ppeer.ID]time.Time)
	}
	for p, until := range s.obstacles {
		if time.Now().After(until) {
			delete(s.obstacles, p)
		}
	}
	s.obstacles[peer] = time.Now().Add(pause)
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

func pbProcess(p view.Process) *pb.Process {
	return &pb.Process{Rank: uint32(p.Rank), Replica: uint32(p.Replica)}
}

func viewProcess(p *pb.Process) view.Process {
	return view.Process{Rank: int(p.GetRank()), Replica: int(p.GetReplica())}
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
	case b.table.PeerOf[c.from] != from.RemotePeer():
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
