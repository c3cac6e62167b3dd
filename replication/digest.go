package replication

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A digest represents a message in an acknowledgement: its tag, number, length and payload, and whether it is
// synchronous. A digest is below 2^61.
type digest uint64

// A key parametrizes digests. A process that knows the key can construct two messages with the same digest, so a
// receiver keeps the key secret until the messages have arrived.
type key [keySize]byte

const keySize = 32

// keyFor returns the key for the messages of a stream from number first on. Without knowledge of secret, the key
// is indistinguishable from random bytes.
func keyFor(secret Secret, s stream, first uint64) key {
	b := append(make([]byte, 0, keySize+16), secret[:]...)
	b = binary.LittleEndian.AppendUint32(b, s.context)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.rank))
	b = binary.LittleEndian.AppendUint64(b, first)
	return sha256.Sum256(b)
}

const (
	blockWords = 32 // words of the message that are hashed with the same key words
	blockBytes = 8 * blockWords
	prime      = 1<<61 - 1 // order of the field in which the blocks are combined
)

// A hash is an expanded key. NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999), which needs one
// multiplication per 16 bytes, maps each block to 128 bits. A polynomial over a prime field (Carter and Wegman)
// combines the blocks and the header into one number. Two messages that are chosen without knowledge of the key
// have the same digest with a probability of about their length in bytes divided by 2^67.
type hash struct {
	words [blockWords]uint64
	point uint64 // point at which the polynomial is evaluated
}

func newHash(k key) (h hash) {
	random := rand.NewChaCha8(k)
	for i := range h.words {
		h.words[i] = random.Uint64()
	}
	h.point = random.Uint64() & prime
	return h
}

// digest returns the digest of m. It does not cover context, source and destination, which the
// acknowledgement names.
func (h *hash) digest(m *protection.Message) digest {
	sync := uint64(0)
	if m.Sync {
		sync = 1 << 32
	}
	x := uint64(1)
	x = h.step(x, uint64(uint32(m.Tag))|sync)
	x = h.step(x, m.Seq>>32)
	x = h.step(x, m.Seq&(1<<32-1))
	x = h.step(x, uint64(len(m.Payload)))
	b := m.Payload
	for ; len(b) >= blockBytes; b = b[blockBytes:] {
		x = h.absorb(x, (*[blockBytes]byte)(b))
	}
	if len(b) > 0 {
		var last [blockBytes]byte
		copy(last[:], b)
		x = h.absorbPairs(x, last[:(len(b)+15)&^15])
	}
	if x >= prime {
		x -= prime
	}
	return digest(x)
}

// absorb adds a whole block to the polynomial.
func (h *hash) absorb(x uint64, b *[blockBytes]byte) uint64 {
	var hi, lo, carry uint64
	for i := 0; i < blockWords; i += 8 {
		at := b[8*i : 8*i+64 : 8*i+64]
		k := h.words[i : i+8 : i+8]
		p1, p0 := bits.Mul64(binary.LittleEndian.Uint64(at)+k[0], binary.LittleEndian.Uint64(at[8:])+k[1])
		q1, q0 := bits.Mul64(binary.LittleEndian.Uint64(at[16:])+k[2], binary.LittleEndian.Uint64(at[24:])+k[3])
		r1, r0 := bits.Mul64(binary.LittleEndian.Uint64(at[32:])+k[4], binary.LittleEndian.Uint64(at[40:])+k[5])
		s1, s0 := bits.Mul64(binary.LittleEndian.Uint64(at[48:])+k[6], binary.LittleEndian.Uint64(at[56:])+k[7])
		lo, carry = bits.Add64(lo, p0, 0)
		hi, _ = bits.Add64(hi, p1, carry)
		lo, carry = bits.Add64(lo, q0, 0)
		hi, _ = bits.Add64(hi, q1, carry)
		lo, carry = bits.Add64(lo, r0, 0)
		hi, _ = bits.Add64(hi, r1, carry)
		lo, carry = bits.Add64(lo, s0, 0)
		hi, _ = bits.Add64(hi, s1, carry)
	}
	return h.fold(x, hi, lo)
}

// absorbPairs adds the last block, whose length is a multiple of 16 bytes.
func (h *hash) absorbPairs(x uint64, b []byte) uint64 {
	var hi, lo uint64
	for i := 0; len(b) >= 16; i, b = i+2, b[16:] {
		p1, p0 := bits.Mul64(binary.LittleEndian.Uint64(b)+h.words[i], binary.LittleEndian.Uint64(b[8:])+h.words[i+1])
		var carry uint64
		lo, carry = bits.Add64(lo, p0, 0)
		hi, _ = bits.Add64(hi, p1, carry)
	}
	return h.fold(x, hi, lo)
}

// fold adds 128 bits to the polynomial, as three coefficients below the prime.
func (h *hash) fold(x, hi, lo uint64) uint64 {
	const part = 43
	x = h.step(x, lo&(1<<part-1))
	x = h.step(x, (lo>>part|hi<<(64-part))&(1<<part-1))
	return h.step(x, hi>>(2*part-64))
}

// step adds a coefficient below the prime. The result is at most two above the prime.
func (h *hash) step(x, coefficient uint64) uint64 {
	hi, lo := bits.Mul64(x, h.point)
	x = lo&prime + (lo>>61 | hi<<3) + coefficient
	x = x&prime + x>>61
	return x
}
