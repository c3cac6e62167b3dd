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
	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
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
	site      int  // its number, equal for all peers of a site
	local     bool // that is the submitter's

	*wire
	ctx     context.Context // ends when the peer is lost, and with close
	cancel  context.CancelFunc
	running sync.WaitGroup

	// Owned by the goroutine that runs the job.
	answered      bool                         // what it was last asked for: to stage, or to start
	quiet         bool                         // the user knows that it says nothing while it stages or starts
	redeemed      bool                         // its reservation key; its slots are its own to free now
	stopped       bool                         // nothing of the job is left there
	staged, total int64                        // bytes
	counted       int64                        // of the staged ones, when progressed was set
	progressed    time.Time                    // when it last had more of them, or began
	pace          pace                         // of the staged ones
	routes        []Route                      // how its processes reach others; nil until it says
	machine       string                       // on which it is; empty: unknown
	distances     map[p2ppeer.ID]time.Duration // to other peers of the job
	early         int                          // bytes that it said before the job was running
	err           error                        // not nil: the peer is lost to the job
	retired       bool                         // it was told to stop before the job is over
	retiredAt     time.Time
	suspended     bool   // its owner has suspended it, as the peer reports
	pauses        int    // times that it has said so, or that it goes on
	count         uint64 // messages that it has said, but for output
	backAt        time.Time
	owes          uint64 // count of what it had said when its stream was last made anew
	away          bool   // its stream is to be made anew: see away.go
	awayAt        time.Time
	mended        context.CancelFunc // ends the asking whether the peer still runs, or nil

	heardAt time.Time // when it said something last, since it was asked to join the fault detector's group

	silent  atomic.Bool // according to the fault detector
	unheard unheard
	doors   connection.Doors

	testimony testimony // of the views, where another process has begun the job

	number int // among those who agree on views; 0: it is none of them, or the submitter's

	// Of a peer that was found while the job ran:
	recruit *recruit           // until its process is in the view
	group   *faultdetect.Group // that watches it until all are watched anew

	// Of processes that were added after the job began: see addition.go.
	keys    map[view.Process][]byte          // public
	added   map[view.Process]*recruit        // being added beside others that run there, until they are in the view
	dropped map[view.Process]reservation.Key // being dropped, until the peer says that nothing of them is left
}

// A wire is one stream of a link, and what waits to be said on it.
type wire struct {
	stream network.Stream // nil when it could not be opened
	in     pbio.Reader
	out    *outgoing
	over   chan struct{} // closed when nothing is to be said on it any more
}

func newWire() *wire { return &wire{out: newOutgoing(), over: make(chan struct{})} }

// end breaks the stream off. The peer's part of the job may go on.
func (w *wire) end() {
	close(w.over)
	if w.stream != nil {
		w.stream.Reset()
	}
}

// leave tells the peer that it waits for this side in vain.
func (w *wire) leave() {
	if w.stream != nil {
		w.stream.ResetWithError(jobpb.Left)
	}
}

// heard is what comes in over a link: a message, or the error that ended it.
type heard struct {
	link *link
	wire *wire // on which it came
	back bool  // first on a wire that was made anew
	msg  *jobpb.FromPeer
	err  error
}

// late reports whether the peer has been given up before this came. A stream that was made
// anew for it is ended: its part would wait there for this side, and keep its slots.
func (h heard) late() bool {
	if h.link.err != nil && h.back {
		h.wire.end()
	}
	return h.link.err != nil
}

// newLink returns the link to the peer of slots, which is to run processes there.
func newLink(slots reservation.Placement, processes ...view.Process) *link {
	l := &link{
		peer: slots.Peer, slots: slots, processes: processes, wire: newWire(),
		keys: make(map[view.Process][]byte), added: make(map[view.Process]*recruit), dropped: make(map[view.Process]reservation.Key),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// open opens the stream. What it hears goes to inbox until done is closed.
func (l *link) open(ctx context.Context, h host.Host, inbox chan<- heard, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stream, err := h.NewStream(ctx, l.peer, Protocol)
	if err != nil {
		return err
	}
	l.stream, l.in = stream, pbio.NewDelimitedReader(stream, jobpb.MaxMessage)
	l.listen(inbox, done)
	return nil
}

// listen begins to hear and to say what there is on the link's wire.
func (l *link) listen(inbox chan<- heard, done <-chan struct{}) {
	w := l.wire
	l.running.Go(func() { l.read(w, inbox, done) }) // ends with the stream
	l.running.Go(w.write)                           // ends with the stream or end
}

func (l *link) read(w *wire, inbox chan<- heard, done <-chan struct{}) {
	for {
		h := heard{link: l, wire: w, msg: &jobpb.FromPeer{}}
		if h.err = w.in.ReadMsg(h.msg); h.err != nil {
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

func (w *wire) write() {
	writer := pbio.NewDelimitedWriter(w.stream)
	for {
		select {
		case <-w.out.wake:
		case <-w.over:
			return
		}
		for _, m := range w.out.take() {
			w.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err := writer.WriteMsg(m); err != nil {
				w.stream.ResetWithError(jobpb.Unwritten) // read then reports the loss
				return
			}
		}
	}
}

// say queues a message. It never blocks. What the peer misses while it is away it is
// told when it is back.
func (l *link) say(m *jobpb.ToPeer) {
	if l.err == nil && !l.away {
		l.out.put(m)
	}
}

// hears counts a message, and reports whether it came on the link's present wire.
func (l *link) hears(h heard) bool {
	if h.wire != l.wire {
		return false
	}
	if h.msg != nil && h.msg.GetOutput() == nil && h.msg.GetResumed() == nil {
		l.count++
	}
	return true
}

// lose gives the peer up: should it still be there, the reset stream tells it
// that the job goes on without it.
func (l *link) lose(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.cancel()
	l.leave()
}

// close ends the link and its goroutines. The inbox's done must be closed.
func (l *link) close() {
	l.cancel()
	if !l.away {
		l.leave()
		l.end()
	}
	l.running.Wait()
}
