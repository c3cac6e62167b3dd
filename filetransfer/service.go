package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/redial"
)

const (
	stallTimeout = 30 * time.Second       // without a byte, before a stream is given up
	openTimeout  = 15 * time.Second       // to connect to the peer and open a stream
	firstBackoff = 100 * time.Millisecond // between two streams; doubles with each failure in a row
	cutFor       = 20 * time.Second       // that an origin may be out of reach at least
)

// maxRoom is how many parts of fellows are in memory: each has a buffer of a piece, and one
// that is coming in compressed another.
const maxRoom = 256

var errClosed = errors.New("file transfer service is closed")

// A Service moves contents between this peer and others: it answers what Serve
// has put on offer, and fetches into the store.
type Service struct {
	host    host.Host
	store   *Store
	log     zerolog.Logger
	conduct *misconduct.Log

	// Constant but for tests, which shorten the times and cut the links.
	stall, backoff, cut time.Duration
	open                func(context.Context, p2ppeer.ID) (link, error)
	unpacks             bool            // what is fetched may come compressed
	far                 func(link) bool // leads beyond the local network

	room chan struct{} // has an element for each part of a fellow that is in memory

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // each Fetch and each served link

	mu       sync.Mutex
	closed   bool
	servings map[string][]*serving // by job
	swarms   map[string]*swarm     // by job
	paces    map[string]Pacing     // by job
	lastLink uint64                // number of the latest link that was served
	links    map[link]struct{}     // being served

	bytesSent, bytesSpared, bytesReceived, filesSent, filesReceived atomic.Int64
}

// Stats counts what a Service has moved since it was made. Bytes are those of
// contents, without framing; files are contents of which the last piece was sent,
// or that have been received in full.
type Stats struct {
	BytesSent, BytesReceived int64
	BytesSpared              int64 // of those that were sent, by compression
	FilesSent, FilesReceived int64
}

// NewService starts to answer other peers on h. Nothing is on offer before
// Serve. The store is what Fetch fills.
func NewService(h host.Host, store *Store, log zerolog.Logger) *Service {
	s := &Service{
		host: h, store: store, log: log, conduct: misconduct.New(log), stall: stallTimeout, backoff: firstBackoff, cut: cutFor, unpacks: true, far: isFar,
		servings: map[string][]*serving{}, swarms: map[string]*swarm{}, links: map[link]struct{}{}, paces: map[string]Pacing{},
		room: make(chan struct{}, maxRoom),
	}
	s.open = s.openStream
	s.ctx, s.cancel = context.WithCancel(context.Background())
	h.SetStreamHandler(ProtocolID, func(st network.Stream) { s.serveLink(st, st.Conn().RemotePeer()) })
	return s
}

// Store returns the store that the service fills.
func (s *Service) Store() *Store { return s.store }

// Stats returns the counts up to now.
func (s *Service) Stats() Stats {
	return Stats{
		BytesSent: s.bytesSent.Load(), BytesReceived: s.bytesReceived.Load(), BytesSpared: s.bytesSpared.Load(),
		FilesSent: s.filesSent.Load(), FilesReceived: s.filesReceived.Load(),
	}
}

// Close ends every transfer in either direction, and returns when none of the
// service's goroutines is left. Partial files stay, to be resumed.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(ProtocolID)
	s.cancel()
	s.mu.Lock()
	s.closed = true
	for l := range s.links {
		_ = l.Reset() // its handler sees the error and ends
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// enter registers a Fetch for Close to wait for; s.wg.Done ends it.
func (s *Service) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.wg.Add(1)
	return nil
}

// enterLink registers a link to be served, which Close resets; leaveLink ends
// it.
func (s *Service) enterLink(l link) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.wg.Add(1)
	s.links[l] = struct{}{}
	return nil
}

func (s *Service) leaveLink(l link) {
	s.mu.Lock()
	delete(s.links, l)
	s.mu.Unlock()
	s.wg.Done()
}

// openStream reaches the peer. A host that can open streams to itself (see
// package loopback) makes a submitter that also has slots no special case.
func (s *Service) openStream(ctx context.Context, to p2ppeer.ID) (link, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	redial.Allow(s.host, to)
	st, err := s.host.NewStream(ctx, to, ProtocolID)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return st, nil
}
