package filetransfer

import (
	"bufio"
	"errors"
	"io"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// idleStalls is how long the fetching peer may request nothing, in multiples of the stall timeout, since it
// may be waiting for other peers.
const idleStalls = 10

var (
	errNotServed = errors.New("no content is served to this peer for this job")
	errUnshared  = errors.New("this peer no longer shares contents of the job")
)

// A sender serves the requests on one link.
type sender struct {
	svc    *Service
	remote p2ppeer.ID
	link   link
	in     pbio.Reader
	w      *bufio.Writer
	msgs   pbio.Writer

	opening
	holder holder // the remote, as entered in the book
	book   *book  // record of the units given to peers; nil if no fresh units are served here
	swarm  *swarm // nil if the remote is not a member
	share  *share // nil while the list is not shared
	told   bitset // shared units that the remote knows of
	packer packer
	rate   atomic.Uint64 // arrival rate reported by the remote, or 0 if parts must not be compressed
	ahead  *ahead        // nil if the remote does not report how much has arrived
}

func newSender(svc *Service, l link, remote p2ppeer.ID) *sender {
	sd := &sender{svc: svc, remote: remote, link: l, in: pbio.NewDelimitedReader(l, maxAsk)}
	moved := func() { sd.book.note(func(l *ledger, now time.Duration) { l.sent(sd.holder, now) }) }
	sd.w = bufio.NewWriterSize(timedWriter{l, svc.stall, moved, sd.pace}, 64<<10)
	sd.msgs = pbio.NewDelimitedWriter(sd.w)
	return sd
}

// pace waits until some of n bytes may be sent, and returns how many.
func (sd *sender) pace(n int) (int, error) {
	if sd.ahead == nil {
		return n, sd.svc.paces.await(sd.svc.work.Context(), sd.job, n)
	}
	n, err := sd.ahead.room(n, sd.svc.stall)
	if err == nil {
		err = sd.svc.paces.await(sd.svc.work.Context(), sd.job, n)
	}
	if err == nil {
		sd.ahead.sent(n)
	}
	return n, err
}

func (sd *sender) run() error {
	err := sd.open()
	if errors.Is(err, errNotServed) {
		return errors.Join(err, sd.link.Close())
	}
	if err == nil {
		err = sd.serveRequests()
		sd.book.note(func(l *ledger, _ time.Duration) { l.gone(sd.holder) })
	}
	if err != nil {
		_ = sd.link.Reset() // err is the one to report
		return err
	}
	return sd.link.Close()
}

func (sd *sender) open() error {
	if err := sd.link.SetReadDeadline(time.Now().Add(sd.svc.stall)); err != nil {
		return err
	}
	var first pb.Ask
	if err := sd.in.ReadMsg(&first); err != nil {
		return err
	}
	var err error
	if sd.opening, err = decodeOpen(first.GetOpen()); err != nil {
		return wrongError{err}
	}
	sd.rate.Store(first.GetRate())
	if sd.counts {
		sd.ahead = newAhead()
	}
	if !sd.admit() {
		err := sd.refuse(pieceID{digest: sd.list}, pb.Refusal_REFUSAL_UNKNOWN, nil)
		return errors.Join(errNotServed, err, sd.w.Flush())
	}
	return sd.link.SetReadDeadline(time.Time{})
}

// admit determines which units the fetching peer may request. It returns false if the peer may request none.
func (sd *sender) admit() (ok bool) {
	if sw := sd.svc.swarms.of(sd.job); sw != nil && slices.Contains(sw.members, sd.remote) {
		sd.swarm = sw
	}
	sd.book, ok = sd.svc.servings.admit(sd.remote, sd.job, sd.list)
	sd.holder = holder{peer: sd.remote, link: sd.svc.lastLink.Add(1)}
	return ok || sd.swarm != nil
}

// serveRequests serves requests until the fetching peer has closed its end.
func (sd *sender) serveRequests() error {
	queue := make(chan request, maxAhead)
	broken := make(chan error, 1)
	// Ends when the link does: closed by the fetching peer, or reset below.
	go func() {
		defer close(queue)
		defer sd.ahead.end()
		broken <- sd.readRequests(queue)
	}()
	if err := sd.answer(queue); err != nil {
		_ = sd.link.Reset()
		if rule := <-broken; errors.As(rule, new(wrongError)) {
			return rule // the violation was first
		}
		return err
	}
	return <-broken
}

// readRequests reads requests ahead, so that the fetching peer never blocks on writing while this one
// blocks on writing to it. It fails if the peer exceeds its window.
func (sd *sender) readRequests(queue chan<- request) error {
	for {
		var msg pb.Ask
		if err := sd.in.ReadMsg(&msg); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if msg.GetRate() > 0 {
			sd.rate.Store(msg.GetRate())
		}
		if n := msg.GetReceived(); n > 0 && !sd.ahead.arrived(n) {
			return wrong("impossible acknowledgement of %d bytes", n)
		}
		switch b := msg.Body.(type) {
		case nil:
			if msg.GetRate() == 0 && msg.GetReceived() == 0 {
				return wrong("empty request")
			}
		case *pb.Ask_Got:
			sd.book.note(func(l *ledger, now time.Duration) { l.got(int(b.Got.GetUnit()), sd.holder, now) })
		case *pb.Ask_Request:
			r, err := decodeRequest(b.Request, sd.units)
			if err != nil {
				return wrongError{err}
			}
			select {
			case queue <- r:
			default:
				return wrong("more outstanding requests than the protocol allows")
			}
		default:
			return wrong("request for unknown content")
		}
	}
}

// answer sends the requested units in the order of the queue, and the announcements for the remote.
func (sd *sender) answer(queue <-chan request) error {
	idle := time.NewTimer(idleStalls * sd.svc.stall)
	defer idle.Stop()
	for {
		changed, err := sd.announce()
		if err != nil {
			return err
		}
		if len(queue) == 0 {
			if err := sd.w.Flush(); err != nil {
				return err
			}
		}
		idle.Reset(idleStalls * sd.svc.stall)
		select {
		case r, ok := <-queue:
			if !ok {
				return nil
			}
			if err := sd.send(r); err != nil {
				return err
			}
		case <-changed:
		case <-idle.C:
			return errors.New("timed out waiting for the next request")
		}
	}
}

// announce announces the units that the remote, a member, can request and does not know of. changed is closed
// when there is more to announce.
func (sd *sender) announce() (changed <-chan struct{}, err error) {
	if sd.swarm == nil {
		return nil, nil
	}
	if sd.share == nil {
		sh, changed, over := sd.swarm.find(sd.list)
		switch {
		case over:
			return nil, errUnshared
		case sh == nil:
			return changed, nil
		case len(sh.units) != sd.units:
			return nil, wrong("list of %d units, which has %d", sd.units, len(sh.units))
		}
		sd.share = sh
	}
	have, changed, over := sd.share.snapshot()
	if over {
		return nil, errUnshared
	}
	msg := sd.newUnits(have)
	if msg == nil {
		return changed, nil
	}
	return changed, sd.msgs.WriteMsg(&pb.Answer{Body: &pb.Answer_Have{Have: msg}})
}

// newUnits returns a message with the units that the remote does not know of: first all units, later the
// additions.
func (sd *sender) newUnits(have bitset) *pb.Have {
	if sd.told == nil {
		sd.told = have
		return &pb.Have{All: have}
	}
	var more []uint32
	for i, b := range have {
		for added := b &^ sd.told[i]; added != 0; added &= added - 1 {
			more = append(more, uint32(8*i+bits.TrailingZeros8(added)))
		}
	}
	sd.told = have
	switch {
	case len(more) == 0:
		return nil
	case len(more) > maxMore:
		return &pb.Have{All: have}
	}
	return &pb.Have{More: more}
}

// send answers one request. A non-nil error means that the link is broken; missing content is reported in
// the answer.
func (sd *sender) send(r request) error {
	if sd.book != nil && sd.offers(r) {
		if taken := sd.book.ask(r, sd.holder, sd.units); taken != nil {
			return sd.msgs.WriteMsg(&pb.Answer{Body: &pb.Answer_Taken{Taken: &pb.Taken{Units: taken}}})
		}
	}
	var shared []Want
	if sd.share != nil {
		shared = sd.share.covers(r)
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for i, it := range r.items {
		var b []byte
		last := false
		refusal, err := pb.Refusal_REFUSAL_UNKNOWN, error(nil)
		if f, ok := sd.svc.servings.lookup(sd.remote, sd.job, it.digest); ok {
			b, refusal, err = readServed(f, it.piece, *buf)
			last = it.piece == pieces(f.size)-1
		} else if shared != nil {
			b, refusal, err = sd.readShared(shared[i], it.piece, *buf)
			last = it.piece == pieces(shared[i].Size)-1
		}
		if refusal != pb.Refusal_REFUSAL_NONE {
			return sd.refuse(it, refusal, err)
		}
		if err := sd.part(b); err != nil {
			return err
		}
		if last {
			sd.svc.counts.filesSent.Add(1)
		}
	}
	sd.book.note(func(l *ledger, now time.Duration) { l.delivered(r.unit, sd.holder, now) })
	return nil
}

// offers reports whether everything that r requests is served to the remote.
func (sd *sender) offers(r request) bool {
	for _, it := range r.items {
		if f, ok := sd.svc.servings.lookup(sd.remote, sd.job, it.digest); !ok || it.piece >= pieces(f.size) {
			return false
		}
	}
	return len(r.items) > 0
}

// readServed reads a piece of a file that may change at any time. It succeeds only if the file is still
// the offered one.
func readServed(f served, piece int, buf []byte) ([]byte, pb.Refusal, error) {
	file, info, err := f.from.open()
	if err != nil {
		return nil, pb.Refusal_REFUSAL_UNREADABLE, err
	}
	defer file.Close()
	if !f.is(info) || piece >= pieces(f.size) {
		return nil, pb.Refusal_REFUSAL_CHANGED, nil
	}
	b := buf[:pieceBytes(f.size, piece)]
	if _, err := file.ReadAt(b, int64(piece)*pieceSize); errors.Is(err, io.EOF) {
		return nil, pb.Refusal_REFUSAL_CHANGED, err
	} else if err != nil {
		return nil, pb.Refusal_REFUSAL_UNREADABLE, err
	}
	if info, err = file.Stat(); err != nil {
		return nil, pb.Refusal_REFUSAL_UNREADABLE, err
	}
	if !f.is(info) {
		return nil, pb.Refusal_REFUSAL_CHANGED, nil
	}
	return b, pb.Refusal_REFUSAL_NONE, nil
}

// readShared reads a piece that was verified when it arrived.
func (sd *sender) readShared(w Want, piece int, buf []byte) ([]byte, pb.Refusal, error) {
	file, err := sd.svc.store.openPart(w.Digest)
	if err != nil {
		return nil, pb.Refusal_REFUSAL_UNKNOWN, err
	}
	defer file.Close()
	b := buf[:pieceBytes(w.Size, piece)]
	if _, err := file.ReadAt(b, int64(piece)*pieceSize); err != nil {
		return nil, pb.Refusal_REFUSAL_UNREADABLE, err
	}
	return b, pb.Refusal_REFUSAL_NONE, nil
}

// part sends a piece, compressed if that saves time.
func (sd *sender) part(b []byte) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	msg, sent := &pb.Part{Length: uint32(len(b))}, b
	if packed := sd.packer.pack(b, *buf, rate(sd.rate.Load())); packed != nil {
		msg.Packed, sent = uint32(len(packed)), packed
	}
	if err := sd.msgs.WriteMsg(&pb.Answer{Body: &pb.Answer_Part{Part: msg}}); err != nil {
		return err
	}
	if _, err := sd.w.Write(sent); err != nil {
		return err
	}
	sd.svc.counts.bytesSent.Add(int64(len(b)))
	sd.svc.counts.bytesSpared.Add(int64(len(b) - len(sent)))
	return nil
}

// refuse answers that a content is not available. It logs a warning for the owner of a changed or
// unreadable file, but only a debug message for unknown content.
func (sd *sender) refuse(it pieceID, why pb.Refusal, cause error) error {
	level := zerolog.WarnLevel
	if why == pb.Refusal_REFUSAL_UNKNOWN {
		level = zerolog.DebugLevel
	}
	sd.svc.log.WithLevel(level).Err(cause).Stringer("peer", sd.remote).Str("job", sd.job).
		Stringer("digest", it.digest).Stringer("refusal", why).Msg("content refused")
	return sd.msgs.WriteMsg(&pb.Answer{Body: &pb.Answer_Part{Part: &pb.Part{Refusal: why}}})
}
