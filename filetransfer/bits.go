package filetransfer

import "math/bits"

// A bitset is a set of small numbers in its wire format: number i is bit i%8 of byte i/8.
type bitset []byte

// newBitset returns an empty set of numbers below n.
func newBitset(n int) bitset { return make(bitset, (n+7)/8) }

func (b bitset) has(i int) bool { return b[i/8]&(1<<(i%8)) != 0 }
func (b bitset) add(i int)      { b[i/8] |= 1 << (i % 8) }

func (b bitset) count() (n int) {
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}
