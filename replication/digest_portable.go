//go:build !amd64

package replication

// nh returns the two sums of NH for b, whose length is a multiple of partBytes and at most blockBytes.
func nh(words *keyWords, b []byte) (s0, s1 uint64) { return portableNH(words, b) }
