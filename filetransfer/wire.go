package filetransfer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// ProtocolID is the libp2p protocol of the service.
const ProtocolID = "/p2pmpi/filetransfer/1.0.0"

// Bounds of what comes over a stream.
const (
	maxRequest = 32 << 10  // bytes of a Request: batch items with room to spare
	maxHeader  = 64        // bytes of a Chunk, without what follows it
	maxChunk   = 256 << 10 // bytes that follow a Chunk
	maxJob     = 256       // bytes of a job's name
)

// A link is the stream between two peers as this package uses it.
type link interface {
	io.ReadWriteCloser
	Reset() error // ends both directions at once; may be called at any time
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// A request is one item of a pb.Request.
type request struct {
	job    string
	digest Digest
	offset int64
}

// decodeRequest checks what a peer asks for.
func decodeRequest(msg *pb.Request) ([]request, error) {
	if len(msg.GetJob()) > maxJob {
		return nil, fmt.Errorf("request: name of the job has %d bytes", len(msg.GetJob()))
	}
	if n := len(msg.GetItems()); n == 0 || n > batch {
		return nil, fmt.Errorf("request: %d items, want 1 to %d", n, batch)
	}
	rs := make([]request, len(msg.GetItems()))
	for i, it := range msg.GetItems() {
		if len(it.GetDigest()) != len(Digest{}) {
			return nil, fmt.Errorf("request: digest of %d bytes", len(it.GetDigest()))
		}
		if it.GetOffset() > MaxFileBytes {
			return nil, fmt.Errorf("request: offset %d", it.GetOffset())
		}
		rs[i] = request{job: msg.GetJob(), digest: Digest(it.GetDigest()), offset: int64(it.GetOffset())}
	}
	return rs, nil
}

func encodeRequest(job string, needs []need) *pb.Request {
	msg := &pb.Request{Job: job, Items: make([]*pb.Item, len(needs))}
	for i, n := range needs {
		msg.Items[i] = &pb.Item{Digest: n.Digest[:], Offset: uint64(n.offset)}
	}
	return msg
}

// A chunkReader reads chunks: each a Chunk message and the bytes it announces.
type chunkReader struct {
	raw  *bufio.Reader
	msgs pbio.Reader
	buf  []byte
}

func newChunkReader(r io.Reader) *chunkReader {
	// pbio reads through the bufio.Reader that it is given, without one of its
	// own in between, so the bytes after a message are next in raw.
	raw := bufio.NewReaderSize(r, 64<<10)
	return &chunkReader{raw: raw, msgs: pbio.NewDelimitedReader(raw, maxHeader), buf: make([]byte, maxChunk)}
}

// next returns the next chunk's bytes, valid until the following call. A
// refusal comes back as a refusedError.
func (r *chunkReader) next() (b []byte, last bool, err error) {
	var msg pb.Chunk
	if err := r.msgs.ReadMsg(&msg); err != nil {
		return nil, false, err
	}
	if msg.GetRefusal() != pb.Refusal_REFUSAL_NONE {
		return nil, false, refusedError(msg.GetRefusal())
	}
	if msg.GetLength() > maxChunk {
		return nil, false, fmt.Errorf("chunk of %d bytes, at most %d are taken", msg.GetLength(), maxChunk)
	}
	b = r.buf[:msg.GetLength()]
	if _, err := io.ReadFull(r.raw, b); err != nil {
		return nil, false, fmt.Errorf("chunk of %d bytes: %w", len(b), noEOF(err))
	}
	return b, msg.GetLast(), nil
}

// noEOF makes an end inside of something unexpected.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A refusedError is the serving peer's word that it will not send a content.
type refusedError pb.Refusal

func (e refusedError) Error() string {
	switch pb.Refusal(e) {
	case pb.Refusal_REFUSAL_UNKNOWN:
		return "it does not serve this content to us for this job"
	case pb.Refusal_REFUSAL_CHANGED:
		return "the file has changed since it was offered"
	case pb.Refusal_REFUSAL_UNREADABLE:
		return "the file cannot be read any more"
	}
	return fmt.Sprintf("refusal %d", int32(e))
}
