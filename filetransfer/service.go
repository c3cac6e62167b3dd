package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/internal/redial"
)

const (
	stallTimeout  = 30 * time.Second       // time without a byte before a stream is given up
	openTimeout   = 15 * time.Second       // bound on connecting to the peer and opening a stream
	firstBackoff  = 100 * time.Millisecond // pause between two streams; doubles with each consecutive failure
	outageTimeout = 20 * time.Second       // least time for which an origin is unreachable before it is given up
)

// maxRoom bounds the parts from members in memory. Each has a buffer of one piece; a part that arrives
// compressed has a second one.
const maxRoom = 256

var errClosed = errors.New("file transfer service is closed")

// A Service transfers contents between this peer and others. It serves the contents that Serve offers, and
// fetches contents into the store.
type Service struct {
	cacheQueries
	servings
	swarms
	paces

	host    host.Host
	store   *Store
	log     zerolog.Logger
	conduct *misconduct.Log

	// Constant except in tests, which shorten the times and cut the links.
	stall, backoff, cut time.Duration
	open                func(context.Context, p2ppeer.ID) (link, error)
	unpacks             bool            // fetched parts may be compressed
	far                 func(link) bool // reports whether a link leads beyond the local network

	room chan struct{} // holds an element for each part from a member that is in memory

	work *background.Work // Fetch calls and served links

	counts   counts
	lastLink atomic.Uint64 // number of the last served link
}

// counts are the current values of Stats.
type counts struct {
	bytesSent, bytesSpared, bytesReceived, filesSent, filesReceived atomic.Int64
}

// Stats counts the data that a Service has transferred since its creation. Bytes are those of contents,
// without framing. Files are contents whose last piece was sent, or that were received completely.
type Stats struct {
	BytesSent, BytesReceived int64
	BytesSpared              int64 // bytes saved by compression, of those sent
	FilesSent, FilesReceived int64
}

// NewService returns a service that answers peers on h. It offers no contents before Serve is called. Fetch
// fills the store.
func NewService(h host.Host, store *Store, log zerolog.Logger) *Service {
	s := &Service{
		cacheQueries: cacheQueries{h, store, log},
		servings:     servings{ofJob: map[string][]*serving{}},
		swarms:       swarms{self: h.ID(), ofJob: map[string]*swarm{}},
		paces:        paces{ofJob: map[string]Pacing{}},
		host:         h, store: store, log: log, conduct: misconduct.New(log),
		stall: stallTimeout, backoff: firstBackoff, cut: outageTimeout, unpacks: true, far: isFar,
		room: make(chan struct{}, maxRoom), work: background.New(context.Background()),
	}
	s.open = s.openStream
	h.SetStreamHandler(ProtocolID, func(st network.Stream) { s.serveLink(st, st.Conn().RemotePeer()) })
	return s
}

// Store returns the store that the service fills.
func (s *Service) Store() *Store { return s.store }

// Stats returns the current counts.
func (s *Service) Stats() Stats {
	c := &s.counts
	return Stats{
		BytesSent: c.bytesSent.Load(), BytesReceived: c.bytesReceived.Load(), BytesSpared: c.bytesSpared.Load(),
		FilesSent: c.filesSent.Load(), FilesReceived: c.filesReceived.Load(),
	}
}

// Close ends all transfers and returns when all goroutines of the service have ended. Partial files
// remain, to be resumed.
func (s *Service) Close() error {
	s.host.RemoveStreamHandler(ProtocolID)
	s.work.Stop()
	s.work.Wait()
	return nil
}

// serveLink answers one peer's requests until the peer closes the link, is silent for too long, or breaks
// the protocol.
func (s *Service) serveLink(l link, remote p2ppeer.ID) {
	s.work.Serve(l, func() {
		const what = "serving files ended early"
		switch err := newSender(s, l, remote).run(); {
		case errors.As(err, new(wrongError)):
			s.conduct.Note(remote, what, err)
		case err != nil:
			s.conduct.Ended(remote, what, err)
		}
	})
}

// openStream opens a stream to the peer. If the host can open streams to itself (see package loopback), a
// submitter that also has slots is not a special case.
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
