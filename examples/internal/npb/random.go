package npb

// Random is NPB's generator x -> 5^13 x mod 2^46. It is a value: Next and Skip
// return the generator that follows.
//
// The product modulo 2^64 has the right low 46 bits, so that one integer
// multiplication is NPB's randlc, to the bit.
type Random uint64

const (
	multiplier = 1220703125 // 5^13
	modulus    = 1 << 46
)

// Seed is where every kernel but EP starts.
const Seed Random = 314159265

// Next returns a number in (0, 1), and the generator after it. Nothing in it is
// rounded.
func (r Random) Next() (Random, float64) {
	r = r * multiplier % modulus
	return r, float64(int64(r)) * 0x1p-46
}

// Skip returns the generator as it is n numbers later, in O(log n) steps.
func (r Random) Skip(n uint64) Random {
	power, square := Random(1), Random(multiplier)
	for ; n > 0; n /= 2 {
		if n&1 == 1 {
			power *= square
		}
		square *= square
	}
	return r * power % modulus
}

// Fill puts the next numbers into dst.
func (r Random) Fill(dst []float64) Random {
	for i := range dst {
		r, dst[i] = r.Next()
	}
	return r
}
