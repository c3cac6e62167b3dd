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
	blockWords = 256 // words of 32 bits of a message that are hashed with the same words of the key
	blockBytes = 4 * blockWords
	prime      = 1<<61 - 1 // order of the field in which the blocks are combined
)

// A hash is an expanded key. NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999) maps each block to 64 bits. It
// adds a word of the key to each word of the block, multiplies the words of each pair, and adds up the products:
//
//	(m0+k0)(m1+k1) + (m2+k2)(m3+k3) + ...
//
// A second sum with the words of the key from k2 on (the Toeplitz construction) makes it 128 bits. Two different blocks
// have the same sums with a probability of 2^-64. Vector instructions compute several products at once
// (digest_amd64.s). A polynomial over a prime field (Carter and Wegman) combines the blocks and the header into one
// number. Two messages that are chosen without knowledge of the key have the same digest with a probability of about
// their length in bytes divided by 2^69, or 2^-58 if they are short.
type hash struct {
	point  uint64 // point at which the polynomial is evaluated
	square uint64 // second power of point
	cube   uint64 // third power of point
	// The first words have been drawn from random. A short message needs only a few, and drawing all of them would
	// take longer than hashing the message.
	words  keyWords
	drawn  int
	random *rand.ChaCha8
}

// keyWords are the words of a key that NH needs for a block.
type keyWords [blockWords + 2]uint32

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
	for need := min(blockWords, (length+7)/8*2) + 2; h.drawn < need; h.drawn += 2 {
		x := h.random.Uint64()
		h.words[h.drawn], h.words[h.drawn+1] = uint32(x), uint32(x>>32)
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
	for ; len(b) > blockBytes; b = b[blockBytes:] {
		x = h.absorb(x, b[:blockBytes])
	}
	if len(b) > 0 {
		x = h.absorb(x, b)
	}
	if x >= prime {
		x -= prime
	}
	return digest(x)
}

// absorb adds a block, of which only the last may be short, to the polynomial.
func (h *hash) absorb(x uint64, b []byte) uint64 {
	whole := len(b) &^ (partBytes - 1)
	s0, s1 := nh(&h.words, b[:whole])
	b, k := b[whole:], h.words[whole/4:]
	for ; len(b) >= 8; b, k = b[8:], k[2:] {
		p0, p1 := products((*[8]byte)(b), (*[4]uint32)(k))
		s0, s1 = s0+p0, s1+p1
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		p0, p1 := products(&last, (*[4]uint32)(k))
		s0, s1 = s0+p0, s1+p1
	}
	return h.fold(x, s1, s0)
}

// products returns what a pair of words adds to the two sums of NH.
func products(pair *[8]byte, k *[4]uint32) (p0, p1 uint64) {
	m0, m1 := binary.LittleEndian.Uint32(pair[0:]), binary.LittleEndian.Uint32(pair[4:])
	return uint64(m0+k[0]) * uint64(m1+k[1]), uint64(m0+k[2]) * uint64(m1+k[3])
}

// partBytes divides the lengths that nh takes.
const partBytes = 64

// portableNH implements nh for any processor.
func portableNH(words *keyWords, b []byte) (s0, s1 uint64) {
	for k := words[:]; len(b) >= partBytes; b, k = b[partBytes:], k[partBytes/4:] {
		m, k := (*[partBytes]byte)(b), (*[partBytes/4 + 2]uint32)(k)
		for i := 0; i < partBytes/4; i += 4 {
			m0, m1 := binary.LittleEndian.Uint32(m[4*i:]), binary.LittleEndian.Uint32(m[4*i+4:])
			m2, m3 := binary.LittleEndian.Uint32(m[4*i+8:]), binary.LittleEndian.Uint32(m[4*i+12:])
			k := (*[6]uint32)(k[i:])
			s0 += uint64(m0+k[0])*uint64(m1+k[1]) + uint64(m2+k[2])*uint64(m3+k[3])
			s1 += uint64(m0+k[2])*uint64(m1+k[3]) + uint64(m2+k[4])*uint64(m3+k[5])
		}
	}
	return s0, s1
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

// addProduct returns the sum of the 128-bit number hi, lo and the product of a and b.
func addProduct(hi, lo, a, b uint64) (uint64, uint64) {
	p1, p0 := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, p0, 0)
	hi, _ = bits.Add64(hi, p1, carry)
	return hi, lo
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
