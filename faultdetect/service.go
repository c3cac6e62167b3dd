package faultdetect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// Protocol is the libp2p protocol between the members of a group.
const Protocol protocol.ID = "/p2pmpi/faultdetect/1.0.0"

// helloTimeout bounds the wait for the first message of a new stream.
const helloTimeout = 5 * time.Second

// errClosed is returned by Join after Close.
var errClosed = errors.New("faultdetect: service closed")

// A Service runs this peer's part in the failure detection of any number of jobs.
type Service struct {
	host    host.Host
	log     zerolog.Logger
	conduct *misconduct.Log
	ends    *network.NotifyBundle // notified of closed connections

	work *background.Work // inbound streams

	mu     sync.Mutex
	groups map[string]*Group // keyed by job
}

// NewService starts to accept the streams of other members. It does not take ownership of the host.
func NewService(h host.Host, log zerolog.Logger) *Service {
	s := &Service{
		host: h, log: log, conduct: misconduct.New(log), work: background.New(context.Background()), groups: map[string]*Group{},
	}
	s.ends = &network.NotifyBundle{DisconnectedF: func(n network.Network, c network.Conn) {
		if p := c.RemotePeer(); n.Connectedness(p) == network.NotConnected {
			s.disconnected(p)
		}
	}}
	h.Network().Notify(s.ends)
	h.SetStreamHandler(Protocol, func(stream network.Stream) { s.work.Serve(stream, func() { s.accept(stream) }) })
	return s
}

// GroupConfig describes the group of one job. All members must agree on all fields but Self and Verdict;
// the submitter's start message contains them.
type GroupConfig struct {
	Job     string        // at most 256 bytes
	Members []p2ppeer.ID  // their order determines each member's index; the host must know their addresses
	Self    int           // index of this peer
	Period  time.Duration // zero means DefaultPeriod
	Offset  uint64        // initial heartbeat
	Hang    time.Duration // tolerated hang: additional time for a silent member
	Mode    Mode

	// Verdict is called for every change of a member's state, in order, by one goroutine. The same
	// goroutine maintains the heartbeat, so Verdict must return promptly. It must not call Close.
	Verdict func(Verdict)
}

// Join makes this peer a member of a job's group and starts its heartbeat at once. The caller calls it
// when the submitter's start message arrives, and must close the Group.
func (s *Service) Join(c GroupConfig) (*Group, error) {
	if c.Period == 0 {
		c.Period = DefaultPeriod
	}
	d, err := s.detector(c)
	if err != nil {
		return nil, fmt.Errorf("join the failure detection of job %q: %w", c.Job, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.work.Context().Err() != nil:
		return nil, errClosed
	case s.groups[c.Job] != nil:
		return nil, fmt.Errorf("join the failure detection of job %q: already a member", c.Job)
	}
	g := newGroup(s, c, d)
	s.groups[c.Job] = g
	return g, nil
}

// detector validates c and returns this peer's detector.
func (s *Service) detector(c GroupConfig) (*Detector, error) {
	switch {
	case c.Job == "" || len(c.Job) > maxHello/2:
		return nil, fmt.Errorf("job name of %d bytes: want 1 to %d", len(c.Job), maxHello/2)
	case c.Self < 0 || c.Self >= len(c.Members) || c.Members[c.Self] != s.host.ID():
		return nil, fmt.Errorf("this peer is not member %d", c.Self)
	case c.Verdict == nil:
		return nil, errors.New("Verdict is nil")
	case len(slices.Compact(slices.Sorted(slices.Values(c.Members)))) != len(c.Members):
		return nil, errors.New("a peer is a member twice")
	}
	return New(Config{Members: len(c.Members), Self: c.Self, Period: c.Period, Offset: c.Offset, Hang: c.Hang, Mode: c.Mode})
}

// disconnected reports a peer whose last connection has ended to all groups. So a process that is killed
// while its machine is alive is detected at once (F2). A live peer answers on a new connection, which the
// question opens.
func (s *Service) disconnected(p p2ppeer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		g.Report(p)
	}
}

// accept processes one inbound stream until either side ends it.
func (s *Service) accept(stream network.Stream) {
	defer func() { _ = stream.Reset() }() // the stream carries data in one direction only

	// The readers of the Hello and of the Beats share this buffer: bufio does not wrap a reader that has
	// a large enough buffer.
	buffer := bufio.NewReaderSize(stream, 4096)
	g, from, err := s.hello(stream, buffer)
	if err == nil {
		err = g.read(stream, buffer, from)
	}
	if err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "heartbeat stream ended", err)
	}
}

// hello reads the job's name and determines which member the remote peer is.
func (s *Service) hello(stream network.Stream, r *bufio.Reader) (g *Group, from int, err error) {
	if err := stream.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return nil, 0, fmt.Errorf("set deadline: %w", err)
	}
	var hello pb.Hello
	if err := pbio.NewDelimitedReader(r, maxHello).ReadMsg(&hello); err != nil {
		return nil, 0, fmt.Errorf("read hello: %w", err)
	}
	if err := stream.SetReadDeadline(time.Time{}); err != nil {
		return nil, 0, fmt.Errorf("clear deadline: %w", err)
	}
	s.mu.Lock()
	g = s.groups[hello.GetJob()]
	s.mu.Unlock()
	if g == nil {
		return nil, 0, fmt.Errorf("job %q has no group here", hello.GetJob())
	}
	from = g.index(stream.Conn().RemotePeer())
	if from < 0 || from == g.self {
		return nil, 0, fmt.Errorf("not a member of job %q", hello.GetJob())
	}
	return g, from, nil
}

// Close leaves all groups and returns when all goroutines of the service have ended.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(Protocol)
	s.host.Network().StopNotify(s.ends)
	s.mu.Lock()
	s.work.Stop()
	groups := slices.Collect(maps.Values(s.groups))
	s.mu.Unlock()
	for _, g := range groups {
		g.Close()
	}
	s.work.Wait()
	return nil
}
