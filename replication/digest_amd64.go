package replication

import "golang.org/x/sys/cpu"

// nh returns the two sums of NH for b, whose length is a multiple of partBytes and at most blockBytes.
func nh(words *keyWords, b []byte) (s0, s1 uint64) {
	if len(b) > 0 && cpu.X86.HasAVX2 {
		return vectorNH(words, &b[0], len(b))
	}
	return portableNH(words, b)
}

// vectorNH implements nh with AVX2, for n > 0 bytes from b on.
//
//go:noescape
func vectorNH(words *keyWords, b *byte, n int) (s0, s1 uint64)
