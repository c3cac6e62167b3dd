package submit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Protocol is the libp2p protocol ID of the control stream.
const Protocol protocol.ID = "/p2pmpi/job/1.0.0"

const (
	dialTimeout = 10 * time.Second
	// writeTimeout limits the write of one message. The messages are small, so a slower peer has
	// not read for a long time.
	writeTimeout = 10 * time.Second
)

// A link is the control stream to one of the job's peers.
type link struct {
	peer      p2ppeer.ID
	processes []view.Process
	slots     reservation.Placement

	*wire
	ctx     context.Context // ends when the peer is lost, and with close
	cancel  context.CancelFunc
	running sync.WaitGroup

	// Owned by the goroutine that runs the job:
	progress  progress // of its stage or start
	session   session
	reported  reported
	redeemed  bool      // it has redeemed its reservation key, and releases its slots itself
	stopped   bool      // nothing of the job is left there
	err       error     // why the peer is lost to the job; nil: it is not
	retired   bool      // told to stop while the job continues
	retiredAt time.Time // time of that
	heardAt   time.Time // time of the last message since it was asked to join the detector group
	number    int       // number in the view group; 0: the submitter's peer, or not a member

	suspicion suspicion // suspicion of the fault detector
	endpoints connection.Endpoints

	// For a peer that was recruited while the job ran:
	recruit *recruit           // nil once its process is in the view
	group   *faultdetect.Group // detector group with this peer until the next regroup

	// For processes that were added after the job began, see addition.go:
	keys    map[view.Process][]byte          // public keys
	added   map[view.Process]*recruit        // processes being added beside others, until they are in the view
	dropped map[view.Process]reservation.Key // processes being dropped, until the peer confirms it
}

// A session is the exchange of messages with a peer over all its streams. A peer that reopens a
// stream repeats the messages that the submitter has not received.
type session struct {
	received     uint64             // number of messages received, except output
	expected     uint64             // value of received that the peer reported when its stream was last reopened
	earlier      uint64             // number of messages that an earlier process of the submitter may have received too
	disconnected bool               // its stream is being reopened, see reconnect.go
	since        time.Time          // when it was disconnected
	reopened     time.Time          // when its stream was last reopened
	stopProbe    context.CancelFunc // ends the check that the peer still runs, or nil
}

// reported is what a peer has reported of itself and its owner.
type reported struct {
	machine   string                       // name of its machine; empty: unknown
	distances map[p2ppeer.ID]time.Duration // round-trip times to other peers of the job
	routes    []Route                      // routes of its processes; nil until reported
	suspended bool                         // suspended by its owner
	pauses    int                          // number of its suspend and resume reports
}

// A wire is one stream of a link, with its outgoing messages.
type wire struct {
	stream network.Stream // nil if it could not be opened
	in     pbio.Reader
	out    *outgoing
	over   chan struct{} // closed when no more messages are sent on it
}

func newWire() *wire { return &wire{out: newOutgoing(), over: make(chan struct{})} }

// end resets the stream. The peer's part of the job may continue.
func (w *wire) end() {
	close(w.over)
	if w.stream != nil {
		w.stream.Reset()
	}
}

// leave resets the stream with the code that tells the peer not to wait for the submitter.
func (w *wire) leave() {
	if w.stream != nil {
		w.stream.ResetWithError(jobpb.Left)
	}
}

// received is a message received over a link, or the error that ended its stream.
type received struct {
	link *link
	wire *wire // stream that it arrived on
	back bool  // first message on a reopened stream
	msg  *jobpb.FromPeer
	err  error
}

// late reports whether the peer was given up before this arrived. If so, late resets a reopened
// stream: on an open stream, the peer's part would wait for the submitter and keep its slots.
func (h received) late() bool {
	if h.link.err != nil && h.back {
		h.wire.end()
	}
	return h.link.err != nil
}

// newLink returns a link to the peer of slots, which is to run the processes.
func newLink(slots reservation.Placement, processes ...view.Process) *link {
	l := &link{
		peer: slots.Peer, slots: slots, processes: processes, wire: newWire(),
		keys: make(map[view.Process][]byte), added: make(map[view.Process]*recruit), dropped: make(map[view.Process]reservation.Key),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// open opens the stream. Messages received on it go to inbox.
func (l *link) open(ctx context.Context, h host.Host, inbox inbox) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stream, err := h.NewStream(ctx, l.peer, Protocol)
	if err != nil {
		return err
	}
	l.stream, l.in = stream, pbio.NewDelimitedReader(stream, jobpb.MaxMessage)
	l.listen(inbox)
	return nil
}

// listen starts to read from and write to the link's current stream.
func (l *link) listen(inbox inbox) {
	w := l.wire
	l.running.Go(func() { l.read(w, inbox) }) // ends with the stream
	l.running.Go(w.write)                     // ends with the stream or end
}

func (l *link) read(w *wire, inbox inbox) {
	for {
		h := received{link: l, wire: w, msg: &jobpb.FromPeer{}}
		if h.err = w.in.ReadMsg(h.msg); h.err != nil {
			h.msg = nil
		}
		if !inbox.put(h) || h.err != nil {
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
				w.stream.ResetWithError(jobpb.Unwritten) // read then returns an error
				return
			}
		}
	}
}

// allFailed reports whether all processes of the peer have failed in v.
func (l *link) allFailed(v view.View) bool {
	return !slices.ContainsFunc(l.processes, func(p view.Process) bool { return v.State(p) != view.Failed })
}

// send queues a message. It never blocks. It drops messages to a disconnected peer; resend repeats
// them once the peer has reconnected.
func (l *link) send(m *jobpb.ToPeer) {
	if l.err == nil && !l.session.disconnected {
		l.out.put(m)
	}
}

// acceptMessage counts a message, and reports whether it arrived on the link's current stream.
func (l *link) acceptMessage(h received) bool {
	if h.wire != l.wire {
		return false
	}
	if h.msg != nil && h.msg.GetOutput() == nil && h.msg.GetResumed() == nil {
		l.session.received++
	}
	return true
}

// lose gives the peer up. If the peer still runs, the reset of the stream tells it that the job
// continues without it.
func (l *link) lose(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.cancel()
	l.leave()
}

// close closes the link and waits for its goroutines. The inbox must be closed.
func (l *link) close() {
	l.cancel()
	if !l.session.disconnected {
		l.leave()
		l.end()
	}
	l.running.Wait()
}

// An inbox passes messages from the control streams to the goroutine that runs the job.
type inbox struct {
	messages chan received
	done     chan struct{} // closed when nothing reads messages any more
}

func newInbox() inbox { return inbox{make(chan received), make(chan struct{})} }

// put waits until a message is taken. It returns false if it never will be.
func (i inbox) put(h received) bool {
	select {
	case i.messages <- h:
		return true
	case <-i.done:
		return false
	}
}

// maxPauses limits how often the user is told that the owner of a peer has suspended or resumed the
// job.
const maxPauses = 64

// pause records that the owner of the peer has suspended its processes, or resumed them, and returns
// a message to the user, or "". Suspended processes owe the submitter no answer, and their peer
// stays connected. A finished job does not wait for their accounts.
func (r *reported) pause(peer p2ppeer.ID, m *jobpb.Paused) string {
	r.suspended = m.Rule != ""
	switch r.pauses++; {
	case r.pauses > maxPauses:
		return ""
	case m.Rule == "":
		return fmt.Sprintf("peer %s resumes the job", short(peer))
	}
	return fmt.Sprintf("the owner of peer %s needs the machine (%s): the job's processes there are suspended, and end if that lasts longer than %v",
		short(peer), plain(m.Rule), max(0, time.Duration(m.MostNs)))
}
