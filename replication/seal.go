package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A seal contains a key, and the digests under that key of the messages of one stream that have arrived since the
// last acknowledgement.
type seal struct {
	key     key
	hash    hash
	digests [ackMessages]digest
	count   int
}

func (s *seal) add(m *protection.Message) {
	s.digests[s.count] = s.hash.digest(m)
	s.count++
}

// encode returns the payload of an acknowledgement: the key and the digests of the last messages that it
// acknowledges, little-endian. The payload reveals the key, so the seal must not be used afterwards.
func (s *seal) encode() []byte {
	b := make([]byte, 0, keySize+8*s.count)
	b = append(b, s.key[:]...)
	for _, d := range s.digests[:s.count] {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	return b
}

// A claim is a receiver's statement about consecutive messages that it has received: their digests.
type claim struct {
	first  uint64 // number of the first message
	key    key
	digest []byte // encoded
}

// decodeClaim decodes the payload, which may be empty, of an acknowledgement of messages up to seq. The claim
// shares memory with b.
func decodeClaim(seq uint64, b []byte) (claim, error) {
	if len(b) == 0 {
		return claim{first: seq + 1}, nil
	}
	n := (len(b) - keySize) / 8
	if n < 1 || n > ackMessages || len(b) != keySize+8*n || uint64(n) > seq {
		return claim{}, fmt.Errorf("malformed digests of messages up to number %d, %d bytes", seq, len(b))
	}
	return claim{first: seq - uint64(n) + 1, key: key(b), digest: b[keySize:]}, nil
}

// end returns the number after that of the last message.
func (c *claim) end() uint64 { return c.first + uint64(len(c.digest)/8) }

// of returns the digest of message seq.
func (c *claim) of(seq uint64) digest {
	return digest(binary.LittleEndian.Uint64(c.digest[8*(seq-c.first):]))
}

// from returns the claim without the messages before seq.
func (c claim) from(seq uint64) claim {
	switch {
	case seq >= c.end():
		return claim{first: seq}
	case seq > c.first:
		c.digest = c.digest[8*(seq-c.first):]
		c.first = seq
	}
	return c
}
