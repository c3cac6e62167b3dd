package filetransfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// A stream is a transfer's connection to one source. Three goroutines share the work, so that a link that
// is faster than hashing on one processor is not slowed down:
//
//	writer ---- asks ----> link --- answers ---> reader ---- parts ----> keeper
//	  ^                                                     verifies and writes them
//	  +--------------------- asks for more ---------------------------------+
type stream struct {
	t    *transfer
	id   int // number of the source in the plan
	peer p2ppeer.ID

	link    link
	answers *answerReader
	out     chan *pb.Ask  // messages to the writer; has room for all unanswered ones
	counted chan struct{} // tells the writer to report how much has arrived
	came    atomic.Uint64 // bytes that have arrived over the link
	parts   chan part     // parts for the keeper

	// Guarded by t.mu.
	asked []asked   // requests that are not completely answered, oldest first
	part  int       // number of contents of the oldest request that have arrived
	until time.Time // current read deadline of the link
	over  bool      // the reader must stop

	// Used by the keeper.
	units int // number of units received

	// Used by the reader.
	inPart bool   // the next bytes belong to a part
	told   uint64 // value of came that was last reported to the source
	counts bool   // the source wants reports of arrived bytes
	rate   rate   // rate at which parts arrive
	said   rate   // the rate that was last reported to the source
}

// An asked is a request that was sent.
type asked struct {
	unit     int
	fresh    bool
	contents []int // indices into the list
}

// A part is one answer of a source: a content or a piece of one, which has to be verified, or the
// information that the unit and others are taken.
type part struct {
	unit, content int
	last          bool    // last part of the unit
	buf           *[]byte // buffer that holds bytes
	bytes         []byte
	taken         bitset
}

// maxParts bounds the parts that have arrived and that the keeper has not started. Each has a buffer of
// one piece.
const maxParts = 4

// buffers is a pool of buffers of one piece each.
var buffers = sync.Pool{New: func() any { b := make([]byte, pieceSize); return &b }}

// A wrongError reports that a source sent invalid data.
type wrongError struct{ error }

func (e wrongError) Unwrap() error { return e.error }

func wrong(format string, args ...any) error { return wrongError{fmt.Errorf(format, args...)} }

// run opens the link and executes the plan for the source until everything is complete or the stream
// fails.
func (st *stream) run(ctx context.Context) error {
	l, err := st.t.svc.open(ctx, st.peer)
	if err != nil {
		return brokenError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	st.link, st.answers = l, newAnswerReader(st, len(st.t.units))
	defer context.AfterFunc(ctx, st.stop)()
	if st.t.svc.unpacks {
		st.rate = guess(l)
	}
	st.counts = st.t.svc.far(l) || st.t.otherSite(st.peer)
	st.out, st.counted, st.parts = make(chan *pb.Ask, 4*maxAhead), make(chan struct{}, 1), make(chan part, maxParts)
	var writing sync.WaitGroup
	writing.Go(func() { st.write(ctx) }) // ends with ctx
	kept := make(chan error, 1)
	go func() { kept <- st.keepAll() }() // ends when parts is closed
	st.join()
	err = st.read(ctx)
	close(st.parts)
	if wrong := <-kept; wrong != nil { // it also ended the reader
		err = wrong
	}
	st.leave()
	if st.t.complete() {
		_ = l.Close() // the result of closing does not matter any more
	} else {
		_ = l.Reset() // err is the one to report
	}
	cancel()
	writing.Wait()
	return err
}

// stop ends the reader. If the source has nothing more to send, it lets the reader return instead of
// resetting the link.
func (st *stream) stop() {
	t := st.t
	t.mu.Lock()
	defer t.mu.Unlock()
	st.over = true
	if t.plan.complete() && len(st.asked) == 0 {
		_ = st.link.SetReadDeadline(time.Now()) // on error, the link is already broken
		return
	}
	_ = st.link.Reset() // users of the link see the error
}

func (st *stream) join() {
	t := st.t
	first := encodeOpen(opening{job: t.job, list: t.id, units: len(t.units), counts: st.counts})
	first.Rate, st.said = uint64(st.rate), st.rate
	st.out <- first
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan.connected(st.id, t.now())
	t.streams[st.id] = st
	t.ask(st)
}

func (st *stream) leave() {
	t := st.t
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, st.id)
	t.plan.disconnected(st.id)
	t.askAll()
}

// write sends messages until ctx ends.
func (st *stream) write(ctx context.Context) {
	w := pbio.NewDelimitedWriter(timedWriter{link: st.link, stall: st.t.svc.stall})
	for {
		var m *pb.Ask
		select {
		case <-ctx.Done():
			return
		case m = <-st.out:
		case <-st.counted:
			m = &pb.Ask{Received: st.came.Load()}
		}
		if w.WriteMsg(m) != nil {
			_ = st.link.Reset() // the reader sees it
			return
		}
	}
}

// send queues a message for the writer. The caller holds t.mu.
func (st *stream) send(m *pb.Ask) {
	select {
	case st.out <- m:
	default: // the other end does not read
		_ = st.link.Reset()
	}
}

// request sends a request for a unit. The caller holds t.mu.
func (st *stream) request(unit, piece int, fresh bool, contents []int) {
	r := request{unit: unit, fresh: fresh, items: make([]pieceID, len(contents))}
	for i, c := range contents {
		r.items[i] = pieceID{digest: st.t.list[c].Digest, piece: piece}
	}
	st.asked = append(st.asked, asked{unit: unit, fresh: fresh, contents: contents})
	st.send(encodeRequest(r))
	_ = st.await() // a broken link fails the read
}

var errComplete = errors.New("all contents have arrived")

// await sets the read deadline: about one stall from now if requests are unanswered, and none otherwise.
// The caller holds t.mu.
func (st *stream) await() error {
	if st.over {
		return errComplete
	}
	stall := st.t.svc.stall
	var until time.Time
	if len(st.asked) > 0 {
		until = time.Now().Add(stall)
	}
	if until.IsZero() == st.until.IsZero() && until.Sub(st.until) < stall/8 {
		return nil // setting a timer for each read would take longer than the read
	}
	st.until = until
	return st.link.SetReadDeadline(until)
}

// Read reads from the link.
func (st *stream) Read(b []byte) (int, error) {
	t := st.t
	t.mu.Lock()
	err := st.await()
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := st.link.Read(b)
	st.count(n)
	if n > 0 && st.inPart { // other messages do not show progress
		t.mu.Lock()
		t.plan.sending(st.id, t.now())
		t.mu.Unlock()
	}
	return n, err
}

// count adds arrived bytes and makes the writer report them to the source.
func (st *stream) count(n int) {
	if came := st.came.Add(uint64(n)); st.counts && came-st.told >= leastChunk {
		st.told = came
		background.Notify(st.counted) // a report that is already pending will include them
	}
}

// read processes the source's messages until everything is complete.
func (st *stream) read(ctx context.Context) error {
	for !st.t.complete() {
		a, err := st.answers.next()
		switch {
		case errors.As(err, new(refusedError)):
			return st.refused(err)
		case err != nil:
			return ended(err)
		case a.have != nil:
			err = st.has(a)
		case a.taken != nil:
			err = st.taken(a.taken)
		default:
			err = st.take(ctx, a.size, a.packed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended classifies the error that ended a stream. Malformed data makes the transfer give up the source. A
// stall or a cut link, even within a message, is a brokenError, which another stream may repair.
func ended(err error) error {
	late, ok := errors.AsType[net.Error](err)
	switch {
	case errors.As(err, new(wrongError)):
		return err
	case ok && late.Timeout(), errors.Is(err, io.ErrUnexpectedEOF), !misconduct.Is(err):
		return brokenError{err}
	}
	return wrongError{err}
}

// refused handles a refusal. A refusal of the origin is final. A member may not have started its own part of
// the job, or may have ended it.
func (st *stream) refused(err error) error {
	if st.id != origin {
		return brokenError{err}
	}
	st.t.mu.Lock()
	defer st.t.mu.Unlock()
	if len(st.asked) > 0 {
		err = fmt.Errorf("%s: %w", st.t.list[st.asked[0].contents[st.part]], err)
	}
	return err
}

func (st *stream) has(a answer) error {
	if st.id == origin {
		return wrong("protocol violation: the origin announced units")
	}
	st.t.mu.Lock()
	defer st.t.mu.Unlock()
	if !st.t.plan.has(st.id, a.have, a.more) {
		return wrong("protocol violation: the peer announced the same units twice")
	}
	st.t.ask(st)
	return nil
}

func (st *stream) taken(units bitset) error {
	st.t.mu.Lock()
	if st.id != origin || len(st.asked) == 0 || !st.asked[0].fresh || st.part > 0 {
		st.t.mu.Unlock()
		return wrong("protocol violation: answer to a request for a fresh unit that was not made")
	}
	p := part{unit: st.asked[0].unit, taken: units}
	st.asked = st.asked[1:]
	st.t.mu.Unlock()
	st.parts <- p
	return nil
}

// take receives the next part of the oldest request.
func (st *stream) take(ctx context.Context, size, packed int) error {
	t := st.t
	t.mu.Lock()
	if len(st.asked) == 0 {
		t.mu.Unlock()
		return wrong("protocol violation: the peer sent %d unrequested bytes", size)
	}
	oldest := st.asked[0]
	p := part{unit: oldest.unit, content: oldest.contents[st.part], last: st.part == len(oldest.contents)-1}
	t.plan.sending(st.id, t.now())
	t.mu.Unlock()
	w, piece := t.list[p.content], t.units[p.unit].piece
	if size != pieceBytes(w.Size, piece) {
		return wrong("%s: received %d bytes as piece %d of its %d bytes", w, size, piece, w.Size)
	}
	var err error
	if p.buf, err = st.buffer(ctx); err != nil {
		return err
	}
	p.bytes = (*p.buf)[:size]
	begun := time.Now()
	st.inPart = true
	err = st.answers.bytes(p.bytes, packed)
	st.inPart = false
	if err != nil {
		st.free(p.buf)
		if errors.As(err, new(wrongError)) {
			return wrong("%s, piece %d: %w", w, piece, err)
		}
		return brokenError{fmt.Errorf("%s, piece %d: %w", w, piece, err)}
	}
	st.measure(cmp.Or(packed, size), time.Since(begun))
	t.svc.counts.bytesReceived.Add(int64(size))
	t.mu.Lock()
	if st.part++; p.last {
		st.asked, st.part = st.asked[1:], 0
	}
	t.mu.Unlock()
	st.parts <- p
	return nil
}

// buffer returns a buffer for a part once there is room. The reader holds no other buffer while it waits,
// and the keeper, which frees buffers, never waits for one. Parts of the origin need no room, so slow
// members do not delay it.
func (st *stream) buffer(ctx context.Context) (*[]byte, error) {
	if st.id != origin {
		select {
		case st.t.svc.room <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return buffers.Get().(*[]byte), nil
}

func (st *stream) free(buf *[]byte) {
	buffers.Put(buf)
	if st.id != origin {
		<-st.t.svc.room
	}
}

const (
	// measured is the least size of a part for measuring the rate of the link. A smaller part may have
	// arrived together with previous data.
	measured = pieceSize / 16
	// guessedLink is the assumed rate of a link beyond the local network, in bytes per second, before it
	// was measured.
	guessedLink rate = 8 << 20
)

// guess returns the rate assumed for a link before it is measured, or 0 for a link that may be fast.
func guess(l link) rate {
	if isFar(l) {
		return guessedLink
	}
	return 0
}

// isFar reports whether a link leads beyond the local network.
func isFar(l link) bool {
	s, ok := l.(network.Stream)
	if !ok {
		return false
	}
	_, err := s.Conn().RemoteMultiaddr().ValueForProtocol(ma.P_CIRCUIT)
	return err == nil || manet.IsPublicAddr(s.Conn().RemoteMultiaddr())
}

// measure records how long the given number of bytes of a part took, and reports the rate to the source
// if it has changed much.
func (st *stream) measure(bytes int, took time.Duration) {
	if bytes < measured || !st.t.svc.unpacks {
		return
	}
	if st.rate.take(bytes, took); st.rate < 1.5*st.said && st.said < 1.5*st.rate {
		return
	}
	select {
	case st.out <- &pb.Ask{Rate: uint64(max(st.rate, 1))}:
		st.said = st.rate
	default: // retried at a later measurement
	}
}

// keepAll processes the parts in order until the channel is closed. The first error ends the reader.
func (st *stream) keepAll() (err error) {
	for p := range st.parts {
		if err == nil {
			if err = st.keep(p); err != nil {
				_ = st.link.Reset() // the reader sees it
			}
		}
		if p.buf != nil {
			st.free(p.buf)
		}
	}
	return err
}

// keep verifies a part and writes it. When its unit is complete, keep requests more.
func (st *stream) keep(p part) error {
	t := st.t
	if p.taken != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.plan.declined(p.taken, t.now())
		t.ask(st)
		return nil
	}
	w, u := t.list[p.content], t.units[p.unit]
	if !w.verify(u.piece, p.bytes) {
		return wrong("%s: the received bytes differ from the submitted ones (SHA-256 mismatch)", w)
	}
	if err := t.write(u, p.content, p.bytes); err != nil || !p.last {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if st.id == origin && len(t.members) > 0 {
		st.send(encodeGot(p.unit))
	}
	st.units++
	t.plan.arrived(st.id, t.now())
	t.has(p.unit)
	t.ask(st)
	return nil
}
