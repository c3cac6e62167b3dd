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
	blockWords = 128 // words of the message that are hashed with the same key words
	blockBytes = 8 * blockWords
	prime      = 1<<61 - 1 // order of the field in which the blocks are combined
)

// A hash is an expanded key. NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999), which needs one
// multiplication per 16 bytes, maps each block to 128 bits. A polynomial over a prime field (Carter and Wegman)
// combines the blocks and the header into one number. Two messages that are chosen without knowledge of the key
// have the same digest with a probability of about their length in bytes divided by 2^69, or 2^-58 if they are short.
type hash struct {
	point  uint64 // point at which the polynomial is evaluated
	square uint64 // second power of point
	cube   uint64 // third power of point
	// The first words have been drawn from random. A short message needs only a few, and drawing all of them would
	// take longer than hashing the message.
	words  [blockWords]uint64
	drawn  int
	random *rand.ChaCha8
}

func newHash(k key) (h hash) {
	h.random = rand.NewChaCha8(k)
	h.point = h.random.Uint64() & prime
	h.raise()
	return h
}

// raise computes the powers of the point.
func (h *hash) raise() {
	h.square = h.step(h.point, 0)
	h.cube = h.step(h.square, 0)
}

// draw draws the words of the key that a message of the given length needs.
func (h *hash) draw(length int) {
	for need := min(blockWords, (length+15)/16*2); h.drawn < need; h.drawn++ {
		h.words[h.drawn] = h.random.Uint64()
	}
}

// digest returns the digest of m. It does not cover context, source and destination, which the
// acknowledgement names.
func (h *hash) digest(m *protection.Message) digest {
	h.draw(len(m.Payload))
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
		x = h.absorbRest(x, b)
	}
	if x >= prime {
		x -= prime
	}
	return digest(x)
}

// absorb adds a whole block to the polynomial.
func (h *hash) absorb(x uint64, b *[blockBytes]byte) uint64 {
	var hi, lo uint64
	for i := 0; i < blockWords; i += 8 {
		hi, lo = addProducts(hi, lo, (*[64]byte)(b[8*i:]), (*[8]uint64)(h.words[i:]))
	}
	return h.fold(x, hi, lo)
}

// absorbRest adds the last block, which is shorter than the others.
func (h *hash) absorbRest(x uint64, b []byte) uint64 {
	var hi, lo uint64
	k := h.words[:]
	for ; len(b) >= 64; b, k = b[64:], k[8:] {
		hi, lo = addProducts(hi, lo, (*[64]byte)(b), (*[8]uint64)(k))
	}
	for ; len(b) >= 16; b, k = b[16:], k[2:] {
		hi, lo = addProduct(hi, lo, binary.LittleEndian.Uint64(b)+k[0], binary.LittleEndian.Uint64(b[8:])+k[1])
	}
	if len(b) > 0 {
		var last [16]byte
		copy(last[:], b)
		hi, lo = addProduct(hi, lo, binary.LittleEndian.Uint64(last[:])+k[0], binary.LittleEndian.Uint64(last[8:])+k[1])
	}
	return h.fold(x, hi, lo)
}

// addProducts adds the products of a part of a block to the 128-bit number hi, lo. To compute all four before adding
// the first is faster than to add each at once.
func addProducts(hi, lo uint64, b *[64]byte, k *[8]uint64) (uint64, uint64) {
	p1, p0 := bits.Mul64(binary.LittleEndian.Uint64(b[0:])+k[0], binary.LittleEndian.Uint64(b[8:])+k[1])
	q1, q0 := bits.Mul64(binary.LittleEndian.Uint64(b[16:])+k[2], binary.LittleEndian.Uint64(b[24:])+k[3])
	r1, r0 := bits.Mul64(binary.LittleEndian.Uint64(b[32:])+k[4], binary.LittleEndian.Uint64(b[40:])+k[5])
	s1, s0 := bits.Mul64(binary.LittleEndian.Uint64(b[48:])+k[6], binary.LittleEndian.Uint64(b[56:])+k[7])
	lo, carry := bits.Add64(lo, p0, 0)
	hi, _ = bits.Add64(hi, p1, carry)
	lo, carry = bits.Add64(lo, q0, 0)
	hi, _ = bits.Add64(hi, q1, carry)
	lo, carry = bits.Add64(lo, r0, 0)
	hi, _ = bits.Add64(hi, r1, carry)
	lo, carry = bits.Add64(lo, s0, 0)
	hi, _ = bits.Add64(hi, s1, carry)
	return hi, lo
}

// addProduct returns the sum of the 128-bit number hi, lo and the product of a and b, modulo 2^128.
func addProduct(hi, lo, a, b uint64) (uint64, uint64) {
	p1, p0 := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, p0, 0)
	hi, _ = bits.Add64(hi, p1, carry)
	return hi, lo
}

// fold adds 128 bits to the polynomial, as three coefficients below the prime. The result is that of three calls of
// step, but no multiplication waits for another, and the sum is reduced only once.
func (h *hash) fold(x, hi, lo uint64) uint64 {
	const part = 43
	s1, s0 := addProduct(0, hi>>(2*part-64), (lo>>part|hi<<(64-part))&(1<<part-1), h.point)
	s1, s0 = addProduct(s1, s0, lo&(1<<part-1), h.square)
	s1, s0 = addProduct(s1, s0, x, h.cube)
	return reduce(s1, s0)
}

// step adds a coefficient below the prime.
func (h *hash) step(x, coefficient uint64) uint64 {
	return reduce(addProduct(0, coefficient, x, h.point))
}

// reduce reduces the number hi, lo, which is below 2^123, modulo the prime. The result is at most two above the
// prime.
func reduce(hi, lo uint64) uint64 {
	x := lo&prime + (lo>>61 | hi<<3)
	return x&prime + x>>61
}
