package jobpb

import (
	"encoding/binary"
	"io"

	"google.golang.org/protobuf/proto"
)

// keptBuffer is the maximum size of the buffer that a Writer keeps, in bytes.
const keptBuffer = 256 << 10

// A Writer writes messages to a control stream, each after its length. Unlike the writer of package pbio,
// it writes each message with one call and reuses its buffer, since output consists of many messages.
type Writer struct {
	to     io.Writer
	buffer []byte
}

// NewWriter returns a Writer that writes to the given stream.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes the length of m and then m, with one call.
func (w *Writer) Write(m proto.Message) error {
	b := binary.AppendUvarint(w.buffer[:0], uint64(proto.Size(m)))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
	if err != nil {
		return err
	}
	if cap(b) <= keptBuffer {
		w.buffer = b
	}
	_, err = w.to.Write(b)
	return err
}
