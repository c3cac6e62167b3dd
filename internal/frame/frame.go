package frame

import (
	"encoding/binary"
	"fmt"
)

// HeaderSize is the length in bytes of every encoded frame header.
const HeaderSize = 32

// MaxPayload bounds the payload of one frame, in bytes.
const MaxPayload = 1<<32 - 1

// A Kind is the purpose of a frame. Channels only transport it; package protection and the protocols that
// implement its interface define the meaning of the values.
type Kind uint8

// The kinds of frames.
const (
	Data        Kind = iota + 1 // a message of the program
	Ack                         // messages up to Seq have arrived
	Determinant                 // the outcome of a nondeterministic call
	DeterminantAck
	Stable // a determinant is at every live replica; with Sync, except at replicas that are set aside
	Sync   // a new master requests the determinants of its rank
	SyncReply
	Receipt    // a synchronous message has been matched
	Query      // asks whether a synchronous message has been matched; with Seq 0, whether all earlier frames have arrived
	Announce   // the header of a message whose payload is sent on request
	Clear      // requests the payload of an announced message
	Body       // the payload of an announced message
	Dispute    // a receiver has received a message that differs from the one that a replica has produced
	Greet      // the receiver is in the sender's view; with Sync, a new replica requests missing messages
	LogRequest // a new replica requests a piece of its rank's message log
	MessageLog // a piece of the message log; with Sync, the last one
	Pace       // the Seq-th request of a replica for the progress of its master's program
	PaceReply
	Taken    // number of bytes that a process's program has received from a rank
	Ready    // a replica that was set aside in epoch Seq is reachable again
	UpToDate // the master of a term tells that replica that it lacks nothing
	maxKind  = UpToDate
)

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool { return k != 0 && k <= maxKind }

// A Header is the fixed part of a frame. Its wire format is HeaderSize bytes, little-endian: kind, sync
// (0 or 1), two zero bytes, context, rank, tag, seq, size.
type Header struct {
	Kind    Kind
	Sync    bool   // with Data, the sender waits for a Receipt
	Context uint32 // context of the communicator
	Rank    uint32 // source rank for Data; otherwise defined by the protocol
	Tag     int32
	Seq     uint64 // position among the frames of (source, destination, context)
	Size    uint64 // bytes of payload that follow
}

// A Frame is the unit that a channel transports.
type Frame struct {
	Header
	Payload []byte // Size bytes
}

// AppendHeader appends the wire format of h to b.
func AppendHeader(b []byte, h Header) []byte {
	b = append(b, make([]byte, HeaderSize)...)
	PutHeader((*[HeaderSize]byte)(b[len(b)-HeaderSize:]), &h)
	return b
}

// PutHeader writes the wire format of h to b.
func PutHeader(b *[HeaderSize]byte, h *Header) {
	first := uint32(h.Kind)
	if h.Sync {
		first |= 1 << 8
	}
	binary.LittleEndian.PutUint32(b[0:], first)
	binary.LittleEndian.PutUint32(b[4:], h.Context)
	binary.LittleEndian.PutUint32(b[8:], h.Rank)
	binary.LittleEndian.PutUint32(b[12:], uint32(h.Tag))
	binary.LittleEndian.PutUint64(b[16:], h.Seq)
	binary.LittleEndian.PutUint64(b[24:], h.Size)
}

// ParseHeader decodes the output of AppendHeader. It rejects all other input: a wrong length, an unknown kind,
// nonzero padding, or a size above MaxPayload.
func ParseHeader(b []byte) (Header, error) {
	if len(b) != HeaderSize {
		return Header{}, fmt.Errorf("frame: header of %d bytes, want %d", len(b), HeaderSize)
	}
	h := Header{
		Kind:    Kind(b[0]),
		Sync:    b[1] == 1,
		Context: binary.LittleEndian.Uint32(b[4:]),
		Rank:    binary.LittleEndian.Uint32(b[8:]),
		Tag:     int32(binary.LittleEndian.Uint32(b[12:])),
		Seq:     binary.LittleEndian.Uint64(b[16:]),
		Size:    binary.LittleEndian.Uint64(b[24:]),
	}
	switch {
	case !h.Kind.Known():
		return Header{}, fmt.Errorf("frame: unknown kind %d", h.Kind)
	case b[1] > 1 || b[2]|b[3] != 0:
		return Header{}, fmt.Errorf("frame: nonzero padding in a header")
	case h.Size > MaxPayload:
		return Header{}, fmt.Errorf("frame: payload of %d bytes, at most %d are allowed", h.Size, uint64(MaxPayload))
	}
	return h, nil
}
