package npb

// Random is NPB's generator x -> 5^13 x mod 2^46. It is a value: Next and Skip return the next
// state of the generator.
//
// The product modulo 2^64 has the correct low 46 bits. So one integer multiplication computes
// exactly NPB's randlc.
type Random uint64

const (
	multiplier = 1220703125 // 5^13
	modulus    = 1 << 46
)

// Seed is the seed of every kernel except EP.
const Seed Random = 314159265

// Next returns a number in (0, 1), and the next state of the generator. The number is exact,
// without rounding.
func (r Random) Next() (Random, float64) {
	r = r * multiplier % modulus
	return r, float64(int64(r)) * 0x1p-46
}

// Skip returns the state of the generator after n numbers, in O(log n) steps.
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

// Fill stores the next numbers in dst, and returns the state after them.
func (r Random) Fill(dst []float64) Random {
	for i := range dst {
		r, dst[i] = r.Next()
	}
	return r
}
