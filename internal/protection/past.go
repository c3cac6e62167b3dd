package protection

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A rank's past is what has reached its programs from outside: messages of other
// ranks and outcomes, as a row of records,
//
//	'm' | context | source | tag | seq | length | payload     a message
//	's' | the same                                            a synchronous one
//	'o' | context | index | length | outcome                  an outcome
//
// whose numbers are varints, the tag's with a sign. Each stream's messages are in
// order.
const (
	recordMessage     = 'm'
	recordSynchronous = 's'
	recordOutcome     = 'o'
)

// AppendMessage appends the record of m, which has been delivered, up to its
// payload.
func AppendMessage(b []byte, m *Message) []byte {
	kind := byte(recordMessage)
	if m.Sync {
		kind = recordSynchronous
	}
	b = binary.AppendUvarint(append(b, kind), uint64(m.Context))
	b = binary.AppendUvarint(b, uint64(m.Source))
	b = binary.AppendVarint(b, int64(m.Tag))
	b = binary.AppendUvarint(b, m.Seq)
	return binary.AppendUvarint(b, uint64(len(m.Payload)))
}

// AppendOutcome appends the record of an outcome that the program has been shown.
func AppendOutcome(b []byte, d *Determinant) []byte {
	b = binary.AppendUvarint(append(b, recordOutcome), uint64(d.Context))
	b = binary.AppendUvarint(b, d.Index)
	return append(binary.AppendUvarint(b, uint64(len(d.Outcome))), d.Outcome...)
}

// A Record is one event of a past: a message, or an outcome.
type Record struct {
	Message *Message // to process self's rank; nil: an outcome
	Outcome Determinant
}

// ErrCut says that a record goes on in bytes that are not there yet.
var ErrCut = errors.New("record of a past is cut off")

// ReadRecord reads the first record in b, of the past of rank self, and returns
// what follows it. What the record holds shares memory with b.
func ReadRecord(b []byte, self int) (Record, []byte, error) {
	r := reader{b: b}
	switch kind := r.byte(); kind {
	case recordMessage, recordSynchronous:
		m := &Message{Dest: self, Sync: kind == recordSynchronous}
		m.Context, m.Source = uint32(r.number(1<<32-1)), int(r.number(1<<31-1))
		m.Tag, m.Seq = r.tag(), r.number(1<<64-1)
		m.Payload = r.bytes(channel.MaxPayload)
		return Record{Message: m}, r.b, r.err
	case recordOutcome:
		var d Determinant
		d.Context, d.Index = uint32(r.number(1<<32-1)), r.number(1<<64-1)
		d.Outcome = r.bytes(channel.MaxPayload)
		return Record{Outcome: d}, r.b, r.err
	default:
		if r.err == nil {
			r.err = fmt.Errorf("record of unknown kind %d in a past", kind)
		}
		return Record{}, nil, r.err
	}
}

// A reader takes values from bytes until one is wrong or cut off.
type reader struct {
	b   []byte
	err error
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.err = ErrCut
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if r.took(n) && v > most {
		r.err = fmt.Errorf("number %d in a past, at most %d is taken", v, most)
	}
	return v
}

func (r *reader) tag() int32 {
	v, n := binary.Varint(r.b)
	if r.took(n) && v != int64(int32(v)) {
		r.err = fmt.Errorf("tag %d in a past", v)
	}
	return int32(v)
}

// took goes on after a number of n bytes, as package binary counts, and reports
// whether there was one.
func (r *reader) took(n int) bool {
	switch {
	case r.err != nil:
	case n == 0:
		r.err = ErrCut
	case n < 0:
		r.err = errors.New("number in a past is too long")
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
		r.err = ErrCut
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}
