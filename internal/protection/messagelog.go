package protection

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// A rank's message log contains the input of its programs: messages of other ranks, and outcomes. It is a
// sequence of records,
//
//	'b'                                               start of the log, from the program's start
//	'm' | context | source | tag | seq | length | payload     a message
//	's' | the same                                            a synchronous message
//	'o' | context | index | length | outcome                  an outcome
//
// whose numbers are varints, signed for the tag. The messages of each stream are in order. A log with a
// checkpoint contains only the records before the program's first checkpoint and after the last:
//
//	'j'                                               start of the log, with a checkpoint
//	'm', 's', 'o' ...                                 up to the first checkpoint
//	'c' | length, 8 bytes | the program's state       at the last checkpoint
//	't' | context | rank | seq                        sent
//	'r' | context | rank | seq                        received
//	'n' | context | 0 | index                         points
//	'k', 'K' | context | dest | tag | seq | length | payload     sent, and still kept
//	'h', 'H' | context | source | the same                       arrived, but not received yet
//	'x' | length | bytes                              data of the creator of the checkpoint
//	'e'                                               end of the checkpoint
//	'm', 's', 'o' ...
//
// The second letter of a pair is for a synchronous message.

// A RecordKind is the kind of a Record.
type RecordKind byte

// The kinds of records.
const (
	RecordStart       RecordKind = 'b'
	RecordResumed     RecordKind = 'j'
	RecordMessage     RecordKind = 'm'
	RecordOutcome     RecordKind = 'o'
	RecordState       RecordKind = 'c'
	recordSent        RecordKind = 't'
	recordReceived    RecordKind = 'r'
	recordPoints      RecordKind = 'n'
	recordKept        RecordKind = 'k'
	recordUnreceived  RecordKind = 'h'
	recordOwn         RecordKind = 'x'
	RecordEnd         RecordKind = 'e'
	recordSynchronous RecordKind = 's' // encoding of a synchronous RecordMessage
)

// StateHeader is the length in bytes of the header before a program's state.
const StateHeader = 9

// AppendState appends the header of a state of the given length in bytes.
func AppendState(b []byte, length uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, byte(RecordState)), length)
}

// AppendMessage appends the record of the delivered message m, without its payload.
func AppendMessage(b []byte, m *Message) []byte {
	return appendMessage(b, RecordMessage, m)
}

// appendMessage appends the record of a message of the given kind, without its payload. The record of a kept
// message contains the destination in place of the source.
func appendMessage(b []byte, kind RecordKind, m *Message) []byte {
	rank := m.Source
	if kind == recordKept {
		rank = m.Dest
	}
	b = binary.AppendUvarint(append(b, letter(kind, m.Sync)), uint64(m.Context))
	b = binary.AppendUvarint(b, uint64(rank))
	b = binary.AppendVarint(b, int64(m.Tag))
	b = binary.AppendUvarint(b, m.Seq)
	return binary.AppendUvarint(b, uint64(len(m.Payload)))
}

// letter returns the encoded kind of a message's record.
func letter(kind RecordKind, sync bool) byte {
	switch {
	case !sync:
	case kind == RecordMessage:
		return byte(recordSynchronous)
	default:
		return byte(kind) - 'a' + 'A'
	}
	return byte(kind)
}

func appendPosition(b []byte, kind RecordKind, at Position) []byte {
	b = binary.AppendUvarint(append(b, byte(kind)), uint64(at.Context))
	b = binary.AppendUvarint(b, uint64(at.Rank))
	return binary.AppendUvarint(b, at.Seq)
}

// AppendOutcome appends the record of an outcome that the program has seen.
func AppendOutcome(b []byte, d *Determinant) []byte {
	b = binary.AppendUvarint(append(b, byte(RecordOutcome)), uint64(d.Context))
	b = binary.AppendUvarint(b, d.Index)
	return append(binary.AppendUvarint(b, uint64(len(d.Outcome))), d.Outcome...)
}

// A Record is one event of a message log, or a piece of a checkpoint.
type Record struct {
	Kind    RecordKind
	Message *Message    // for RecordMessage, recordKept, recordUnreceived; to the rank of the log or, if kept, from it
	Outcome Determinant // for RecordOutcome
	At      Position    // for recordSent, recordReceived, recordPoints
	Length  uint64      // for RecordState: number of bytes that follow, which are not records
	Bytes   []byte      // for recordOwn
}

// ErrTruncated reports that a record is incomplete because further bytes are missing.
var ErrTruncated = errors.New("truncated record in the message log")

// ReadRecord decodes the first record in b, of the message log of rank self, and returns the bytes after
// it. The record shares memory with b.
func ReadRecord(b []byte, self int) (Record, []byte, error) {
	r := reader{b: b}
	first := r.byte()
	rec := Record{Kind: RecordKind(first)}
	switch rec.Kind {
	case recordSynchronous:
		rec.Kind = RecordMessage
	case 'K', 'H':
		rec.Kind = RecordKind(first - 'A' + 'a')
	}
	switch rec.Kind {
	case RecordStart, RecordResumed, RecordEnd:
	case RecordMessage, recordKept, recordUnreceived:
		rec.Message = r.message(rec.Kind, self)
		rec.Message.Sync = first != byte(rec.Kind)
	case RecordOutcome:
		rec.Outcome.Context, rec.Outcome.Index = uint32(r.number(1<<32-1)), r.number(1<<64-1)
		rec.Outcome.Outcome = r.bytes(frame.MaxPayload)
	case recordSent, recordReceived, recordPoints:
		rec.At = Position{Context: uint32(r.number(1<<32 - 1)), Rank: int(r.number(1<<31 - 1)), Seq: r.number(1<<64 - 1)}
	case RecordState:
		rec.Length = r.fixed()
	case recordOwn:
		rec.Bytes = r.bytes(frame.MaxPayload)
	default:
		if r.err == nil {
			r.err = fmt.Errorf("record of unknown kind %d in the message log", first)
		}
	}
	return rec, r.b, r.err
}

// A reader decodes values until a value is invalid or incomplete.
type reader struct {
	b   []byte
	err error
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.err = ErrTruncated
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) message(kind RecordKind, self int) *Message {
	m := &Message{Context: uint32(r.number(1<<32 - 1))}
	rank := int(r.number(1<<31 - 1))
	if m.Source, m.Dest = rank, self; kind == recordKept {
		m.Source, m.Dest = self, rank
	}
	m.Tag, m.Seq = r.tag(), r.number(1<<64-1)
	m.Payload = r.bytes(frame.MaxPayload)
	return m
}

// fixed decodes a number of 8 bytes.
func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.err = ErrTruncated
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if r.took(n) && v > most {
		r.err = fmt.Errorf("number %d in the message log, at most %d is allowed", v, most)
	}
	return v
}

func (r *reader) tag() int32 {
	v, n := binary.Varint(r.b)
	if r.took(n) && v != int64(int32(v)) {
		r.err = fmt.Errorf("invalid tag %d in the message log", v)
	}
	return int32(v)
}

// took advances past a number of n bytes, as returned by package binary, and reports whether it was
// valid.
func (r *reader) took(n int) bool {
	switch {
	case r.err != nil:
	case n == 0:
		r.err = ErrTruncated
	case n < 0:
		r.err = errors.New("overlong number in the message log")
	default:
		r.b = r.b[n:]
		return true
	}
	return false
}

func (r *reader) bytes(most uint64) []byte {
	n := r.number(most)
	switch {
	case r.err != nil:
		return nil
	case n > uint64(len(r.b)):
		r.err = ErrTruncated
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}
