package filetransfer

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// ProtocolID is the libp2p protocol ID of the service.
const ProtocolID = "/p2pmpi/filetransfer/2.2.0"

// Bounds of the messages on a stream.
const (
	maxAsk    = 16 << 10   // bytes of an Ask: a request for maxBatch contents, and reserve
	maxAhead  = soleWindow // unanswered requests
	maxJob    = 256        // bytes of a job's name
	maxMore   = 1024       // units in one Have
	maxWrite  = 64 << 10   // bytes that must be written within the stall timeout
	maxAnswer = 64         // bytes of an Answer apart from its units
)

// A link is the stream between two peers, as this package uses it.
type link interface {
	io.ReadWriteCloser
	Reset() error // ends both directions at once; may be called at any time
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// errSendTimeout reports that the peer reads nothing. The peer may be disconnected, so this is not a protocol
// violation.
var errSendTimeout = errors.New("timed out sending to the peer")

// A timedWriter fails if writing maxWrite bytes takes longer than stall.
type timedWriter struct {
	link  link
	stall time.Duration
	moved func()                 // called after some bytes were written; may be nil
	pace  func(int) (int, error) // waits until some of the bytes may be sent, and returns how many; may be nil
}

func (w timedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		next := min(len(b), maxWrite)
		if w.pace != nil {
			if next, err = w.pace(next); err != nil {
				return n, err
			}
		}
		if err := w.link.SetWriteDeadline(time.Now().Add(w.stall)); err != nil {
			return n, err
		}
		var m int
		m, err = w.link.Write(b[:next])
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			err = errSendTimeout
		}
		n += m
		b = b[m:]
		if w.moved != nil {
			w.moved()
		}
	}
	return n, err
}

// An opening is the first message of a stream.
type opening struct {
	job    string
	list   Digest
	units  int
	counts bool // the fetching peer reports how much has arrived
}

func decodeOpen(msg *pb.Open) (o opening, err error) {
	switch {
	case msg == nil:
		return o, errors.New("the stream does not begin with an open message")
	case len(msg.GetJob()) > maxJob:
		return o, fmt.Errorf("job name of %d bytes", len(msg.GetJob()))
	case len(msg.GetList()) != len(Digest{}):
		return o, fmt.Errorf("list digest of %d bytes", len(msg.GetList()))
	case msg.GetUnits() < 1 || msg.GetUnits() > maxUnits:
		return o, fmt.Errorf("list of %d units", msg.GetUnits())
	}
	return opening{job: msg.GetJob(), list: Digest(msg.GetList()), units: int(msg.GetUnits()), counts: msg.GetCounts()}, nil
}

func encodeOpen(o opening) *pb.Ask {
	return &pb.Ask{Body: &pb.Ask_Open{Open: &pb.Open{Job: o.job, List: o.list[:], Units: uint32(o.units), Counts: o.counts}}}
}

// A request is a decoded pb.Request.
type request struct {
	unit  int
	fresh bool
	items []pieceID
}

// A pieceID identifies one piece of a content.
type pieceID struct {
	digest Digest
	piece  int
}

// decodeRequest validates and decodes a request on a stream for a list of units units.
func decodeRequest(msg *pb.Request, units int) (r request, err error) {
	if msg.GetUnit() >= uint32(units) {
		return r, fmt.Errorf("request: unit %d of %d", msg.GetUnit(), units)
	}
	if n := len(msg.GetItems()); n == 0 || n > maxBatch {
		return r, fmt.Errorf("request: %d items, want 1 to %d", n, maxBatch)
	}
	r = request{unit: int(msg.GetUnit()), fresh: msg.GetFresh(), items: make([]pieceID, len(msg.GetItems()))}
	for i, it := range msg.GetItems() {
		if len(it.GetDigest()) != len(Digest{}) {
			return r, fmt.Errorf("request: digest of %d bytes", len(it.GetDigest()))
		}
		if int64(it.GetPiece()) > maxFileBytes/pieceSize {
			return r, fmt.Errorf("request: piece %d", it.GetPiece())
		}
		r.items[i] = pieceID{digest: Digest(it.GetDigest()), piece: int(it.GetPiece())}
	}
	return r, nil
}

func encodeRequest(r request) *pb.Ask {
	msg := &pb.Request{Unit: uint32(r.unit), Fresh: r.fresh, Items: make([]*pb.Item, len(r.items))}
	for i, it := range r.items {
		msg.Items[i] = &pb.Item{Digest: it.digest[:], Piece: uint32(it.piece)}
	}
	return &pb.Ask{Body: &pb.Ask_Request{Request: msg}}
}

func encodeGot(unit int) *pb.Ask {
	return &pb.Ask{Body: &pb.Ask_Got{Got: &pb.Got{Unit: uint32(unit)}}}
}

// An answerReader reads the answers of a serving peer.
type answerReader struct {
	units int
	raw   *bufio.Reader
	msgs  pbio.Reader
}

func newAnswerReader(r io.Reader, units int) *answerReader {
	// pbio reads through the given bufio.Reader without a buffer of its own, so the bytes after a message
	// are next in raw.
	raw := bufio.NewReaderSize(r, 64<<10)
	return &answerReader{
		units: units, raw: raw,
		msgs: pbio.NewDelimitedReader(raw, maxAnswer+max(len(newBitset(units)), 5*maxMore)),
	}
}

// An answer is one of: size bytes, to be read with bytes; units that are taken; units that the peer has.
type answer struct {
	size   int
	packed int // compressed size on the wire, or 0 if uncompressed
	taken  bitset
	have   bitset
	more   []uint32
}

// next returns the next answer. It returns a refusal as a refusedError, and an invalid answer as a
// wrongError.
func (r *answerReader) next() (a answer, err error) {
	var msg pb.Answer
	if err := r.msgs.ReadMsg(&msg); err != nil {
		return a, err
	}
	switch b := msg.Body.(type) {
	case *pb.Answer_Part:
		if b.Part.GetRefusal() != pb.Refusal_REFUSAL_NONE {
			return a, refusedError(b.Part.GetRefusal())
		}
		if b.Part.GetLength() > pieceSize {
			return a, wrong("part of %d bytes, at most %d are allowed", b.Part.GetLength(), pieceSize)
		}
		if n := b.Part.GetPacked(); n > 0 && n >= b.Part.GetLength() {
			return a, wrong("part of %d bytes compressed to %d", b.Part.GetLength(), n)
		}
		a.size, a.packed = int(b.Part.GetLength()), int(b.Part.GetPacked())
		return a, nil
	case *pb.Answer_Taken:
		a.taken, err = r.set(b.Taken.GetUnits())
		return a, err
	case *pb.Answer_Have:
		for _, u := range b.Have.GetMore() {
			if u >= uint32(r.units) {
				return a, wrong("unit %d out of range: there are %d", u, r.units)
			}
		}
		a.more = b.Have.GetMore()
		a.have = newBitset(r.units)
		if len(b.Have.GetAll()) > 0 {
			a.have, err = r.set(b.Have.GetAll())
		}
		return a, err
	}
	return a, wrong("answer of unknown type")
}

func (r *answerReader) set(b []byte) (bitset, error) {
	if len(b) != len(newBitset(r.units)) {
		return nil, wrong("malformed set of %d units: %d bytes", r.units, len(b))
	}
	if spare := r.units % 8; spare > 0 && b[len(b)-1]>>spare != 0 {
		return nil, wrong("set contains units above %d", r.units)
	}
	return b, nil
}

// bytes reads the bytes that follow a part into b. If packed is above 0, they are packed bytes of
// compressed data.
func (r *answerReader) bytes(b []byte, packed int) error {
	if packed == 0 {
		return r.fill(b)
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if err := r.fill((*buf)[:packed]); err != nil {
		return err
	}
	if err := unpack(b, (*buf)[:packed]); err != nil {
		return wrongError{err}
	}
	return nil
}

func (r *answerReader) fill(b []byte) error {
	if _, err := io.ReadFull(r.raw, b); err != nil {
		return fmt.Errorf("part of %d bytes: %w", len(b), noEOF(err))
	}
	return nil
}

// noEOF turns an EOF inside a part into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A refusedError reports that the serving peer refuses to send a content.
type refusedError pb.Refusal

func (e refusedError) Error() string {
	return cmp.Or(refusals[pb.Refusal(e)], fmt.Sprintf("refusal %d", int32(e)))
}

var refusals = map[pb.Refusal]string{
	pb.Refusal_REFUSAL_UNKNOWN:    "it does not serve this content to us for this job",
	pb.Refusal_REFUSAL_CHANGED:    "the file has changed since it was offered",
	pb.Refusal_REFUSAL_UNREADABLE: "the file cannot be read any more",
}
