package mpj

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"reflect"

	"github.com/p2pmpi/p2pmpi/mpj/internal/canonical"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// SendValue sends any Go value that encoding/gob can encode, or whose type has MarshalBinary and
// UnmarshalBinary. Equal values yield equal messages at all replicas: maps are sorted, and types are
// numbered in the order of use. A type with its own encoding must encode equal values to equal
// bytes. SendValue is slower than Send, and is meant for values other than slices of elements.
func SendValue[V any](c *Comm, v V, dest, tag int) error {
	if err := c.checkDest("SendValue", dest, tag); err != nil {
		return err
	}
	b, err := encode(c, "SendValue", v)
	if err != nil {
		return err
	}
	return errorOf("SendValue", core.Send(&c.base, engineapi.Standard, b, dest, tag))
}

// RecvValue receives a value sent with SendValue. V is the type that was sent.
func RecvValue[V any](c *Comm, source, tag int) (v V, s Status, err error) {
	b, received, err := core.RecvWhole(c.core(), source, tag)
	if err != nil || source == ProcNull {
		return v, Status(received), errorOf("RecvValue", err)
	}
	v, err = decode[V](c, "RecvValue", b)
	return v, Status(received), err
}

// BcastValue returns root's v at every rank of c. At other ranks v is ignored.
func BcastValue[V any](c *Comm, v V, root int) (V, error) {
	const op = "BcastValue"
	if err := c.checkIntra(op); err != nil {
		return v, err
	}
	call := core.Call{Name: op}
	if c.compares() {
		call.Type = reflect.TypeFor[V]().String()
	}
	var b []byte
	var invalid error
	if c.Rank() == root {
		b, invalid = encode(c, op, v)
	}
	if err := core.CheckValue(&c.base, call, root, invalid); err != nil {
		return v, c.wrap(op, err)
	}
	b, err := core.BcastWhole(&c.base, b, root)
	if err != nil || c.Rank() == root {
		return v, c.wrap(op, err)
	}
	return decode[V](c, op, b)
}

// A binaryValue encodes itself. Whether *V is a binaryValue depends only on V, so sender and
// receiver use the same encoding.
type binaryValue interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func marshal[V any](v V) ([]byte, error) {
	if own, ok := any(&v).(binaryValue); ok {
		return own.MarshalBinary()
	}
	return canonical.Append(nil, v)
}

func encode[V any](c *Comm, op string, v V) ([]byte, error) {
	b, err := marshal(v)
	if err != nil {
		return nil, c.handle(&Error{Class: ErrArg, Op: op, Detail: "value cannot be encoded", Err: err})
	}
	return b, nil
}

func decode[V any](c *Comm, op string, b []byte) (v V, err error) {
	if own, ok := any(&v).(binaryValue); ok {
		err = own.UnmarshalBinary(b)
	} else {
		err = gob.NewDecoder(bytes.NewReader(b)).Decode(&v)
	}
	if err != nil {
		return v, c.handle(&Error{Class: ErrType, Op: op, Detail: "message cannot be decoded", Err: err})
	}
	return v, nil
}
