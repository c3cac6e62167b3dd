package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// The payload of a SyncReply is a sequence of determinants, ordered by point, each
//
//	context 4 | index 8 | length 4 | outcome
//
// little-endian. The encoding of a set is unique.
const heldHeader = 16

// encodeHeld encodes outcomes, which must be ordered by point.
func encodeHeld(hs []*held) []byte {
	size := 0
	for _, h := range hs {
		size += heldHeader + len(h.Outcome)
	}
	b := make([]byte, 0, size)
	for _, h := range hs {
		b = appendDeterminant(b, h.Determinant)
	}
	return b
}

func appendDeterminant(b []byte, d protection.Determinant) []byte {
	b = binary.LittleEndian.AppendUint32(b, d.Context)
	b = binary.LittleEndian.AppendUint64(b, d.Index)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Outcome)))
	return append(b, d.Outcome...)
}

// decodeHeld decodes the output of encodeHeld and rejects anything else. The outcomes share memory with
// b.
func decodeHeld(b []byte) ([]protection.Determinant, error) {
	if most := maxHeldBytes; len(b) > most {
		return nil, fmt.Errorf("determinants of %d bytes, at most %d are allowed", len(b), most)
	}
	var ds []protection.Determinant
	for len(b) > 0 {
		if len(b) < heldHeader {
			return nil, fmt.Errorf("determinant %d has a truncated header", len(ds))
		}
		d := protection.Determinant{Point: protection.Point{
			Context: binary.LittleEndian.Uint32(b), Index: binary.LittleEndian.Uint64(b[4:]),
		}}
		n := int(binary.LittleEndian.Uint32(b[12:]))
		b = b[heldHeader:]
		if n > maxOutcome || n > len(b) {
			return nil, fmt.Errorf("determinant %d: outcome of %d bytes, %d left", len(ds), n, len(b))
		}
		d.Outcome, b = b[:n:n], b[n:]
		if len(ds) > 0 && comparePoints(ds[len(ds)-1].Point, d.Point) >= 0 {
			return nil, fmt.Errorf("determinant %d is out of order", len(ds))
		}
		ds = append(ds, d)
	}
	return ds, nil
}
