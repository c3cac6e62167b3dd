package viewgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

// Protocol is the libp2p protocol ID for the peers of a group.
const Protocol protocol.ID = "/p2pmpi/view/1.0.0"

// TickPeriod is the duration of a Member's tick in a Service.
const TickPeriod = 100 * time.Millisecond

const (
	// helloTimeout bounds the wait for the first message on a new stream.
	helloTimeout = 5 * time.Second
	// joinTimeout bounds the wait of a stream for its group. The peers that learn of the group first
	// contact others that do not know of it yet.
	joinTimeout = 5 * time.Second
	// maxWaiting bounds the streams that wait for their group.
	maxWaiting = 64
	// maxWaitingEach bounds those of one peer: several jobs of the same peers may start at once.
	maxWaitingEach = 16
	// maxHello bounds the first message of a stream, in bytes.
	maxHello = 512
	// maxMessage bounds every other message, in bytes: entries and their overhead.
	maxMessage = 4 * maxAppend
)

// errClosed is the error of using a Service after Close.
var errClosed = errors.New("viewgroup: service closed")

// A Service runs this peer's part in the view groups of any number of jobs.
type Service struct {
	host    host.Host
	log     zerolog.Logger
	conduct *misconduct.Log

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup    // one per inbound stream, and per group that this peer leaves
	waiting *misconduct.Quota // of streams that wait for their group

	mu     sync.Mutex
	groups map[string]*Group // by job
	joined chan struct{}     // closed and replaced whenever a group is added
}

// NewService starts to accept the streams of other peers. Close does not close the host.
func NewService(h host.Host, log zerolog.Logger) *Service {
	s := &Service{
		host: h, log: log, conduct: misconduct.New(log), groups: make(map[string]*Group),
		joined: make(chan struct{}), waiting: misconduct.NewQuota(maxWaiting, maxWaitingEach),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	h.SetStreamHandler(Protocol, s.accept)
	return s
}

// GroupConfig describes the group of one job. All its peers must use the same values, which the submitter
// sends, except for Self and the functions.
type GroupConfig struct {
	Job     string               // at most 256 bytes
	Peers   []p2ppeer.ID         // the submitter's first, then by preference as members; then newcomers in their order
	First   int                  // number of first peers, whose addresses the host must know
	Members int                  // number of voters at a time
	Self    int                  // index of this peer
	View    view.View            // first view of the job
	RunsOn  map[view.Process]int // initial peer of each process

	Introduction *Newcomer // of this peer, if it is a new process of the submitter; else nil

	// Committed receives every change of the view, in order, and the view after the last of them. It
	// receives several changes at once if they are known at once. Came receives every newcomer before the
	// newcomer's process is in the view. Contact receives this peer's contact with the majority whenever
	// that changes; it is InTouch at first. The group's goroutine calls these functions, so they must
	// return promptly and must not call Close.
	Committed func([]Committed, view.View)
	Came      func(Newcomer)
	Contact   func(Contact)
}

// Join makes this peer take part in the group of a job. The caller must close or leave the Group.
func (s *Service) Join(c GroupConfig) (*Group, error) {
	doing := fmt.Sprintf("join the view group of job %q", c.Job)
	if err := s.validate(c); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	ids, told := make(map[int]p2ppeer.ID), make(map[int]p2ppeer.ID)
	for i, id := range c.Peers {
		if i < c.First {
			ids[i] = id
		} else if id != "" {
			told[i] = id
		}
	}
	m, err := New(Config{
		View: c.View, Peers: c.First, Members: c.Members, Self: c.Self, Submitter: c.submitter(), RunsOn: c.RunsOn, IDs: ids, Told: told,
		Verify: verifier(c.Job), Sign: signer(s.host.Peerstore().PrivKey(s.host.ID()), c.Job),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	for _, before := range s.leaving() {
		if before.config.Job == c.Job { // this peer comes again, under another number
			before.Close()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, errClosed
	case s.groups[c.Job] != nil:
		return nil, fmt.Errorf("%s: this peer is in it already", doing)
	}
	g := newGroup(s, c, m)
	s.groups[c.Job] = g
	close(s.joined)
	s.joined = make(chan struct{})
	return g, nil
}

// submitter returns the last number of the submitter's peer that this peer knows.
func (c GroupConfig) submitter() (last int) {
	for i, id := range c.Peers {
		if id == c.Peers[submitterPeer] {
			last = i
		}
	}
	return last
}

func (s *Service) validate(c GroupConfig) error {
	switch {
	case c.Job == "" || len(c.Job) > maxHello/2:
		return fmt.Errorf("job name of %d bytes: want 1 to %d", len(c.Job), maxHello/2)
	case c.Self < 0 || c.Self >= len(c.Peers) || c.Peers[c.Self] != s.host.ID():
		return fmt.Errorf("this peer does not have index %d", c.Self)
	case len(c.Peers) > 2*maxPeers:
		return fmt.Errorf("it has had %d peers, at most %d are allowed", len(c.Peers), 2*maxPeers)
	case c.First < 1 || c.First > len(c.Peers):
		return fmt.Errorf("%d of %d peers are the first", c.First, len(c.Peers))
	}
	sorted := slices.Sorted(slices.Values(c.Peers[:c.First]))
	if len(slices.Compact(sorted)) != c.First {
		return errors.New("a peer is in it twice")
	}
	return c.View.Valid()
}

// accept reads the messages on one stream from another peer, until the stream or the group ends.
func (s *Service) accept(stream network.Stream) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		_ = stream.Reset()
		return
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	stop := context.AfterFunc(s.ctx, func() { _ = stream.Reset() })
	defer stop()
	defer func() { _ = stream.Reset() }() // the stream carries no answers

	buffer := bufio.NewReaderSize(stream, 4096) // both readers use it directly, without another buffer
	g, from, err := s.meet(stream, buffer)
	if err == nil {
		err = g.read(stream, buffer, from)
	}
	if err != nil {
		s.conduct.Ended(stream.Conn().RemotePeer(), "view stream ended", err)
	}
}

// meet reads the job's name, and returns its group and the number of the remote peer.
func (s *Service) meet(stream network.Stream, r *bufio.Reader) (g *Group, from int, err error) {
	give, err := s.waiting.Take(stream.Conn().RemotePeer())
	if err != nil {
		return nil, 0, fmt.Errorf("streams that wait for a group: %w", err)
	}
	defer give()
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
	if g = s.await(hello.GetJob()); g == nil {
		return nil, 0, fmt.Errorf("job %q has no view group here", hello.GetJob())
	}
	fromSubmitter := stream.Conn().RemotePeer() == g.config.Peers[submitterPeer]
	if fromSubmitter && hello.GetNumber() > 0 {
		g.meetSubmitter(int(hello.GetNumber()), hello.GetSignature())
	}
	from = g.number(stream.Conn().RemotePeer())
	switch {
	case from < 0 || from == g.config.Self:
		return nil, 0, fmt.Errorf("not a peer of job %q", hello.GetJob())
	case fromSubmitter && from != int(hello.GetNumber()):
		return nil, 0, fmt.Errorf("process %d of the submitter of job %q, whose last one is %d", hello.GetNumber(), hello.GetJob(), from)
	}
	return g, from, nil
}

// await returns the group of a job, which may still be on its way to this peer, or nil.
func (s *Service) await(job string) *Group {
	timeout := time.NewTimer(joinTimeout)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		g, joined := s.groups[job], s.joined
		s.mu.Unlock()
		if g != nil {
			return g
		}
		select {
		case <-joined:
		case <-timeout.C:
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}

// closeLater closes a group once this peer may leave it. It returns false if the service is closed.
func (s *Service) closeLater(g *Group) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Go(func() { // ends with the group
		select {
		case <-g.left:
		case <-g.ctx.Done():
		}
		g.Close()
	})
	return true
}

// leaving returns the groups that this peer leaves.
func (s *Service) leaving() (groups []*Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.leaves() {
			groups = append(groups, g)
		}
	}
	return groups
}

// leaveTimeout is how long Close waits for groups that this peer leaves to do without its vote. A leader that answers
// replaces a voter in that time.
const leaveTimeout = time.Second

// awaitLeaving waits until this peer has no vote in the groups that it leaves.
func (s *Service) awaitLeaving() {
	tick := time.NewTicker(TickPeriod)
	defer tick.Stop()
	votes := func(g *Group) bool { return g.Votes(s.host.ID()) }
	for late := time.Now().Add(leaveTimeout); slices.ContainsFunc(s.leaving(), votes) && time.Now().Before(late); {
		<-tick.C
	}
}

// Close leaves all groups, within leaveTimeout. It returns when all goroutines of the service have ended.
func (s *Service) Close() error {
	s.awaitLeaving()
	s.host.RemoveStreamHandler(Protocol)
	s.mu.Lock()
	s.cancel()
	var groups []*Group
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	s.mu.Unlock()
	for _, g := range groups {
		g.Close()
	}
	s.wg.Wait()
	return nil
}
