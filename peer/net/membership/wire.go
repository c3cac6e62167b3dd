package membership

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// maxMessage bounds one message of the exchange, in bytes.
const maxMessage = 2*maxSealed + 64

// writeMessage writes a message after its length, a big-endian integer of two bytes.
func writeMessage(w io.Writer, m *pb.Word) error {
	data, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 2, maxMessage), m)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	binary.BigEndian.PutUint16(data, uint16(len(data)-2))
	_, err = w.Write(data)
	return err
}

// readMessage reads one message. It reads no byte after the message, since a muxer may use the connection next.
func readMessage(r io.Reader) (*pb.Word, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n > maxMessage {
		return nil, fmt.Errorf("message of %d bytes, at most %d are allowed", n, maxMessage)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	m := new(pb.Word)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return m, nil
}
