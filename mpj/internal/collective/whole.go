package collective

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// Reductions of encoded values, whose lengths differ and are not known to the receivers. Each member
// keeps its partial result itself: it encodes the partial result when it is sent, and combines it
// with the encoded partial results of other ranks.

// recvWhole receives a message of any length.
func (t *Team) recvWhole(source int) ([]byte, error) {
	b, s, err := t.Engine.RecvWhole(t.Context, t.world(source), engineapi.AnyTag)
	if err != nil {
		return nil, t.cause(err)
	}
	return b, t.sameCall(s, source)
}

// reduceWhole combines along the tree of doc.go at rank 0. higher combines the partial result with
// one of higher ranks.
func reduceWhole(t *Team, encode func() ([]byte, error), higher func(b []byte) error) error {
	for bit := 1; bit < t.Size; bit *= 2 {
		if t.Rank&bit != 0 {
			b, err := encode()
			if err != nil {
				return err
			}
			return t.send(b, t.Rank-bit)
		}
		if t.Rank+bit >= t.Size {
			continue
		}
		b, err := t.recvWhole(t.Rank + bit)
		if err != nil {
			return err
		}
		if err := higher(b); err != nil {
			return err
		}
	}
	return nil
}

// reduceWholeAt is reduceWhole with the result at root. It returns the encoded result at root, but
// nil at rank 0, where the partial result is the result.
func reduceWholeAt(t *Team, encode func() ([]byte, error), higher func(b []byte) error, root int) ([]byte, error) {
	err := reduceWhole(t, encode, higher)
	if err != nil || root == 0 || t.Rank != 0 && t.Rank != root {
		return nil, err
	}
	if t.Rank == root {
		return t.recvWhole(0)
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	return nil, t.send(b, root)
}

// allreduceWhole returns the encoded result, but nil at rank 0, where the partial result is the
// result.
func allreduceWhole(t *Team, encode func() ([]byte, error), higher func(b []byte) error) ([]byte, error) {
	if err := reduceWhole(t, encode, higher); err != nil || t.Size == 1 {
		return nil, err
	}
	var b []byte
	if t.Rank == 0 {
		var err error
		if b, err = encode(); err != nil {
			return nil, err
		}
	}
	b, err := bcastWhole(t, b, 0)
	if err != nil || t.Rank == 0 {
		return nil, err
	}
	return b, nil
}

// scanWhole passes the partial results from rank to rank. lower combines one of lower ranks with the
// partial result of this rank. scanWhole returns the encoded partial result of the lower ranks.
func scanWhole(t *Team, encode func() ([]byte, error), lower func(b []byte) error) (before []byte, err error) {
	if t.Rank > 0 {
		if before, err = t.recvWhole(t.Rank - 1); err != nil {
			return nil, err
		}
		if err := lower(before); err != nil {
			return nil, err
		}
	}
	if t.Rank+1 == t.Size {
		return before, nil
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	return before, t.send(b, t.Rank+1)
}
