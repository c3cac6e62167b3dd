package collective

import (
	"encoding/binary"
	"errors"
)

// Heads forward blocks whose lengths they do not know. Each block is in a record:
//
//	rank (4 bytes) | length (4 bytes), or direct | block
//
// A block longer than passedOn is sent directly between root and its rank, and the record only
// states this. The memory of a head is therefore bounded by the number of ranks that it represents.
const (
	passedOn     = 4 << 10
	recordHeader = 8
	recordMost   = recordHeader + passedOn
	direct       = 1<<32 - 1 // stored instead of a length
)

// A record is a block in transit.
type record struct {
	whole []byte // nil without a record
	block []byte
	far   bool // the block is sent directly
}

var errRecords = errors.New("malformed blocks: the ranks do not make the same call")

// appendRecord appends the record of rank's block to b.
func appendRecord(b []byte, rank int, block []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	if len(block) > passedOn {
		return binary.LittleEndian.AppendUint32(b, direct)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(block)))
	return append(b, block...)
}

// readRecords returns the records in b, indexed by rank, for size ranks. They share the memory of
// b.
func readRecords(b []byte, size int) ([]record, error) {
	all := make([]record, size)
	for len(b) > 0 {
		if len(b) < recordHeader {
			return nil, errRecords
		}
		rank, length := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		far := length == direct
		if far {
			length = 0
		}
		if uint64(rank) >= uint64(size) || all[rank].whole != nil || length > passedOn || int(length) > len(b)-recordHeader {
			return nil, errRecords
		}
		end := recordHeader + int(length)
		all[rank] = record{whole: b[:end], block: b[recordHeader:end], far: far}
		b = b[end:]
	}
	return all, nil
}
