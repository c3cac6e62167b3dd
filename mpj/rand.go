package mpj

import (
	"encoding/binary"
	"math/rand/v2"
)

// Rand returns a source of random numbers that gives this rank the same ones in
// every run with the same seed, at all its replicas, and other ranks other
// ones. It is for one goroutine at a time.
//
// For numbers that differ from run to run, the seed is w.RandomSeed().
func (w *World) Rand(seed uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(w.rank))
	return rand.New(rand.NewChaCha8(key))
}

// RandomSeed returns a number that differs from call to call, from rank to rank
// and from run to run, and is the same at all replicas of the rank: the master
// draws it. Bcast one to have it at all ranks. In a world that has ended it is 0.
func (w *World) RandomSeed() uint64 { return w.engine.RandomSeed() }
