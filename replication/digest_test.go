package replication

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// slowDigest computes a digest from its definition, with big integers.
func slowDigest(h *hash, m protection.Message) digest {
	p, two64 := big.NewInt(prime), new(big.Int).Lsh(big.NewInt(1), 64)
	x := big.NewInt(1)
	step := func(c *big.Int) {
		x.Mul(x, new(big.Int).SetUint64(h.point)).Add(x, c).Mod(x, p)
	}
	flag := uint64(0)
	if m.Sync {
		flag = 1 << 32
	}
	for _, c := range []uint64{uint64(uint32(m.Tag)) | flag, m.Seq >> 32, m.Seq & (1<<32 - 1), uint64(len(m.Payload))} {
		step(new(big.Int).SetUint64(c))
	}
	padded := append([]byte(nil), m.Payload...)
	for len(padded)%8 != 0 {
		padded = append(padded, 0)
	}
	two32 := new(big.Int).Lsh(big.NewInt(1), 32)
	sum := func(b []byte, k []uint32) *big.Int { // NH
		total := new(big.Int)
		for i := 0; i < len(b)/4; i += 2 {
			product := big.NewInt(1)
			for j := range 2 {
				word := new(big.Int).SetUint64(uint64(binary.LittleEndian.Uint32(b[4*(i+j):])))
				word.Add(word, new(big.Int).SetUint64(uint64(k[i+j])))
				product.Mul(product, word.Mod(word, two32))
			}
			total.Add(total, product)
		}
		return total.Mod(total, two64)
	}
	for block := range slices.Chunk(padded, blockBytes) {
		s := sum(block, h.words[2:])
		s.Lsh(s, 64).Add(s, sum(block, h.words[:]))
		for range 3 {
			step(new(big.Int).Mod(s, new(big.Int).Lsh(big.NewInt(1), 43)))
			s.Rsh(s, 43)
		}
	}
	return digest(x.Uint64())
}

func TestDigestMatchesItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for size := range 3*blockBytes + 20 {
		if size > blockBytes+20 && size < 3*blockBytes-20 {
			continue
		}
		m := protection.Message{Tag: int32(rng.Uint32()), Seq: rng.Uint64(), Sync: size%2 == 0, Payload: make([]byte, size)}
		for i := range m.Payload {
			m.Payload[i] = byte(rng.Uint32()) | byte(-(size % 3 / 2)) // some payloads consist of ones only
		}
		h := newHash(key{byte(size)})
		if got, want := h.digest(&m), slowDigest(&h, m); got != want {
			t.Fatalf("%d bytes: %x, want %x", size, got, want)
		}
	}
}

// TestNHIsTheSameOnAllProcessors checks that processes with different processors get the same sums.
func TestNHIsTheSameOnAllProcessors(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	h := newHash(key{1})
	h.draw(blockBytes)
	for size := 0; size <= blockBytes; size += partBytes {
		for range 10 {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(rng.Uint32()) | byte(-rng.IntN(2))
			}
			s0, s1 := nh(&h.words, b)
			if want0, want1 := portableNH(&h.words, b); s0 != want0 || s1 != want1 {
				t.Fatalf("%d bytes: %x, %x on this processor, %x, %x in portable code", size, s0, s1, want0, want1)
			}
		}
	}
}

// TestFoldTakesThreeSteps checks the result of fold for the largest values as well as for random values.
func TestFoldTakesThreeSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := []uint64{0, 1, prime - 1, prime, prime + 2, math.MaxUint64}
	for range 20 {
		values = append(values, rng.Uint64())
	}
	for _, point := range values {
		h := hash{point: point & prime}
		h.raise()
		for _, x := range values {
			for _, hi := range values {
				for _, lo := range values {
					x := min(x, prime+2)
					want := x
					for _, c := range []uint64{lo & (1<<43 - 1), (lo>>43 | hi<<21) & (1<<43 - 1), hi >> 22} {
						want = h.step(want, c)
					}
					if got := h.fold(x, hi, lo); got > prime+2 || got%prime != want%prime {
						t.Fatalf("fold of %x, %x, %x at %x is %x, three steps lead to %x", x, hi, lo, point, got, want)
					}
				}
			}
		}
	}
}

// TestDigestsOfDifferentMessagesDiffer checks that the digest depends on every bit of a message, its length, and
// every field of its header.
func TestDigestsOfDifferentMessagesDiffer(t *testing.T) {
	h := newHash(key{1})
	for _, size := range []int{0, 1, 15, 16, 17, blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 5} {
		m := protection.Message{Tag: 1, Seq: 1, Payload: make([]byte, size)}
		seen := map[digest]bool{h.digest(&m): true}
		differs := func(what string, other protection.Message) {
			if d := h.digest(&other); seen[d] {
				t.Errorf("%d bytes: the message with %s has the same digest", size, what)
			} else {
				seen[d] = true
			}
		}
		for bit := range 8 * size {
			other := m
			other.Payload = append([]byte(nil), m.Payload...)
			other.Payload[bit/8] ^= 1 << (bit % 8)
			differs("a different bit", other)
		}
		longer := m
		longer.Payload = make([]byte, size+1)
		differs("an additional zero byte", longer)
		for _, tag := range []int32{0, -1, 1 << 30} {
			other := m
			other.Tag = tag
			differs("a different tag", other)
		}
		for _, seq := range []uint64{2, 1 << 32, 1<<63 + 1} {
			other := m
			other.Seq = seq
			differs("a different number", other)
		}
		other := m
		other.Sync = true
		differs("a different mode", other)
	}
}

// TestKeysAreIndependent checks that messages with equal digests under one key have different digests under
// another key.
func TestKeysAreIndependent(t *testing.T) {
	seen := make(map[key]bool)
	for first := range uint64(3) {
		for rank := range 3 {
			for context := range uint32(3) {
				seen[keyFor(Secret{1}, stream{context, rank}, first)] = true
				seen[keyFor(Secret{2}, stream{context, rank}, first)] = true
			}
		}
	}
	if len(seen) != 2*27 {
		t.Errorf("%d different keys for %d inputs", len(seen), 2*27)
	}
}

func BenchmarkDigest(b *testing.B) {
	h := newHash(key{1})
	for _, size := range []int{1, 1 << 10, 1 << 20} {
		b.Run("", func(b *testing.B) {
			m := protection.Message{Payload: make([]byte, size)}
			b.SetBytes(int64(size))
			for b.Loop() {
				h.digest(&m)
			}
		})
	}
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			newHash(keyFor(Secret{}, stream{}, 1))
		}
	})
}
