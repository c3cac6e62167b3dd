package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/calls"

// Collectives of values, which the interface encodes. The receivers do not know the lengths.

// CheckValue returns an error if a collective of values on c with a root is invalid. With checks, it
// also compares the calls of all ranks. root is calls.None without a root. invalid is the reason why
// the interface rejects its arguments, or nil.
func CheckValue(c *Comm, call Call, root int, invalid error) error {
	if root != calls.None {
		if err := checkRoot(c, root); err != nil {
			invalid = err
		}
	}
	return Agree(c, call.Name, calls.Call{Root: root, Count: calls.None, Type: call.Type, Operation: call.Operation}, invalid)
}

// BcastWhole returns root's b at every rank.
func BcastWhole(c *Comm, b []byte, root int) ([]byte, error) {
	t := teamOf(c, CollectiveSlot)
	b, err := t.BcastWhole(b, root)
	return b, c.wrap(err)
}

// ReduceWhole combines the encoded values of all ranks. encode encodes the partial result of this
// rank, and higher combines it with an encoded one of higher ranks. ReduceWhole returns the encoded
// result at root, but nil at rank 0, where the partial result is the result.
func ReduceWhole(c *Comm, encode func() ([]byte, error), higher func(b []byte) error, root int) ([]byte, error) {
	t := teamOf(c, CollectiveSlot)
	b, err := t.ReduceWhole(encode, higher, root)
	return b, c.wrap(err)
}

// AllreduceWhole is ReduceWhole with the result at every rank.
func AllreduceWhole(c *Comm, encode func() ([]byte, error), higher func(b []byte) error) ([]byte, error) {
	t := teamOf(c, CollectiveSlot)
	b, err := t.AllreduceWhole(encode, higher)
	return b, c.wrap(err)
}

// ScanWhole combines the encoded values of all ranks up to this one. lower combines the partial result
// of this rank with the encoded one of the lower ranks, which ScanWhole also returns, or nil at rank 0.
func ScanWhole(c *Comm, encode func() ([]byte, error), lower func(b []byte) error) ([]byte, error) {
	t := teamOf(c, CollectiveSlot)
	before, err := t.ScanWhole(encode, lower)
	return before, c.wrap(err)
}

// BcastBuffer is Bcast of items of a datatype. The datatypes may differ between ranks, but all items
// have the same total size.
func BcastBuffer(c *Comm, call Call, b Buffer, root int) error {
	message, scratch := b.Message()
	if err := Run(c, call, Bcast(Elements{Bytes: message, Length: len(message), Unit: 1}, root), Op{}); err != nil {
		return err
	}
	if scratch != nil && c.rank != root {
		b.Unpack(message)
	}
	scratch.Put()
	return nil
}
