package job

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Protocol is the control stream's protocol ID.
const Protocol protocol.ID = "/p2pmpi/job/1.0.0"

const (
	dialTimeout = 10 * time.Second
	// writeTimeout bounds one message. The messages are small, so a peer that
	// takes longer has not read for a long time.
	writeTimeout = 10 * time.Second
)

// A link is the control stream to one of the job's peers.
type link struct {
	peer      p2ppeer.ID
	processes []view.Process
	slots     reservation.Placement

	stream  network.Stream // nil when it could not be opened
	out     *outgoing
	closed  chan struct{}
	running sync.WaitGroup

	// Owned by the goroutine that runs the job.
	answered      bool                         // what it was last asked for: to stage, or to start
	redeemed      bool                         // its reservation key; its slots are its own to free now
	stopped       bool                         // nothing of the job is left there
	staged, total int64                        // bytes
	routes        []Route                      // how its processes reach others; nil until it says
	machine       string                       // on which it is; empty: unknown
	distances     map[p2ppeer.ID]time.Duration // to other peers of the job
	early         int                          // bytes that it said before the job was running
	err           error                        // not nil: the peer is lost to the job
	retired       bool                         // it was told to stop before the job is over
	retiredAt     time.Time

	// Of a peer that was found while the job ran:
	recruit *recruit // until its process is in the view
	key     []byte   // public, of its process
	group   *faultdetect.Group
	silent  atomic.Bool // the group says so
}

// heard is what comes in over a link: a message, or the error that ended it.
type heard struct {
	link *link
	msg  *jobpb.FromPeer
	err  error
}

// newLink returns the link to the peer of slots, which is to run processes there.
func newLink(slots reservation.Placement, processes ...view.Process) *link {
	return &link{peer: slots.Peer, slots: slots, processes: processes, out: newOutgoing(), closed: make(chan struct{})}
}

// open opens the stream. What it hears goes to inbox until done is closed.
func (l *link) open(ctx context.Context, h host.Host, inbox chan<- heard, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stream, err := h.NewStream(ctx, l.peer, Protocol)
	if err != nil {
		return err
	}
	l.stream = stream
	l.running.Go(func() { l.read(inbox, done) }) // ends with the stream
	l.running.Go(l.write)                        // ends with the stream or close
	return nil
}

func (l *link) read(inbox chan<- heard, done <-chan struct{}) {
	reader := pbio.NewDelimitedReader(l.stream, jobpb.MaxMessage)
	for {
		h := heard{link: l, msg: &jobpb.FromPeer{}}
		if h.err = reader.ReadMsg(h.msg); h.err != nil {
			h.msg = nil
		}
		select {
		case inbox <- h:
		case <-done:
			return
		}
		if h.err != nil {
			return
		}
	}
}

func (l *link) write() {
	writer := pbio.NewDelimitedWriter(l.stream)
	for {
		select {
		case <-l.out.wake:
		case <-l.closed:
			return
		}
		for _, m := range l.out.take() {
			l.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err := writer.WriteMsg(m); err != nil {
				l.stream.Reset() // read then reports the loss
				return
			}
		}
	}
}

// say queues a message. It never blocks.
func (l *link) say(m *jobpb.ToPeer) {
	if l.err == nil {
		l.out.put(m)
	}
}

// lose gives the peer up: should it still be there, the reset stream tells it
// that the job goes on without it.
func (l *link) lose(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	if l.stream != nil {
		l.stream.Reset()
	}
}

// close ends the link and its goroutines. The inbox's done must be closed.
func (l *link) close() {
	close(l.closed)
	if l.stream != nil {
		l.stream.Reset()
	}
	l.running.Wait()
}
