package mpj

import (
	"bytes"
	"encoding/gob"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// SendValue sends any Go value that package encoding/gob can encode. It is
// slower than Send and meant for what is not a slice of elements.
func SendValue[V any](c *Comm, v V, dest, tag int) error {
	if err := c.checkDest("SendValue", dest, tag); err != nil {
		return err
	}
	b, err := encode(c, "SendValue", v)
	if err != nil || dest == ProcNull {
		return err
	}
	return c.wrap("SendValue", c.engine.Send(c.context(messageSlot), c.worldRank(dest), int32(tag), b, engine.Standard))
}

// RecvValue receives what SendValue sent. V is the type that was sent.
func RecvValue[V any](c *Comm, source, tag int) (v V, s Status, err error) {
	if err := c.checkSource("RecvValue", source, tag); err != nil {
		return v, Status{}, err
	}
	if source == ProcNull {
		return v, nothing, nil
	}
	b, received, err := c.engine.RecvWhole(c.context(messageSlot), c.worldRank(source), int32(tag))
	if err != nil {
		return v, Status{}, c.wrap("RecvValue", err)
	}
	v, err = decode[V](c, "RecvValue", b)
	return v, c.statusOf(received), err
}

// BcastValue returns root's v at every rank of c; elsewhere v is not looked at.
func BcastValue[V any](c *Comm, v V, root int) (V, error) {
	if err := c.checkRoot("BcastValue", root); err != nil {
		return v, err
	}
	var b []byte
	if c.rank == root {
		var err error
		if b, err = encode(c, "BcastValue", v); err != nil {
			return v, err
		}
	}
	b, err := c.bcastWhole(b, root)
	if err != nil || c.rank == root {
		return v, c.wrap("BcastValue", err)
	}
	return decode[V](c, "BcastValue", b)
}

func encode(c *Comm, op string, v any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, c.handle(&Error{Class: ErrArg, Op: op, Detail: "value cannot be encoded", Err: err})
	}
	return b.Bytes(), nil
}

func decode[V any](c *Comm, op string, b []byte) (v V, err error) {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&v); err != nil {
		return v, c.handle(&Error{Class: ErrOther, Op: op, Detail: "message cannot be decoded", Err: err})
	}
	return v, nil
}
