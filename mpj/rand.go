package mpj

import (
	"encoding/binary"
	"math/rand/v2"
)

// Rand returns a source of random numbers. A given seed yields the same numbers at this rank in
// every run and at all its replicas, and different numbers at other ranks. Only one goroutine at a
// time may use a source.
//
// For numbers that differ between runs, use w.RandomSeed() as the seed.
func (w *World) Rand(seed uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(w.Rank()))
	return rand.New(rand.NewChaCha8(key))
}

// RandomSeed returns a number that differs between calls, ranks and runs, and is the same at all
// replicas of the rank, because the master draws it. Use Bcast to share a seed among all ranks.
// RandomSeed returns 0 after the world has ended.
func (w *World) RandomSeed() uint64 { return w.engine().RandomSeed() }
