package replication

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// The contexts of the test programs. Receives in named name their source; receives in wild match any message.
const (
	named uint32 = iota
	wild
)

// An op is one call of a scripted program.
type op struct {
	kind    opKind
	context uint32
	rank    int    // for opSend the destination, for opRecv the source
	index   uint64 // for opRecvAny and opDraw the point, from 0
}

type opKind int

const (
	opSend    opKind = iota
	opRecv           // from a given rank
	opRecvAny        // from any rank
	opDraw           // a random number
	opCheckpoint
)

// shows reports whether a call returns a value to the program.
func (o op) shows() bool { return o.kind != opSend && o.kind != opCheckpoint }

// point returns the point of a call. The test programs number all their points consecutively, regardless
// of their contexts.
func (o op) point() protection.Point {
	if o.kind == opRecvAny {
		return protection.Point{Context: wild, Index: o.index}
	}
	return protection.Point{Context: o.context, Index: o.index}
}

// points reports whether a call has a point.
func (o op) points() bool { return o.kind == opRecvAny || o.kind == opDraw }

// scripts returns a program for each of n ranks. The programs cannot deadlock, because they are generated as one
// sequence in which every receive follows a matching send.
func scripts(rng *rand.Rand, n, length int) [][]op {
	all := make([][]op, n)
	points := make([]uint64, n)
	type pending struct {
		context      uint32
		source, dest int
	}
	var open []pending
	receive := func(i int) {
		m := open[i]
		open = append(open[:i], open[i+1:]...)
		o := op{kind: opRecv, context: m.context, rank: m.source}
		if m.context == wild {
			o.kind, o.index = opRecvAny, points[m.dest]
			points[m.dest]++
		}
		all[m.dest] = append(all[m.dest], o)
	}
	for range length {
		switch rank := rng.IntN(n); {
		case rng.IntN(12) == 0:
			all[rank] = append(all[rank], op{kind: opCheckpoint})
		case rng.IntN(8) == 0:
			all[rank] = append(all[rank], op{kind: opDraw, context: uint32(rng.IntN(2)), index: points[rank]})
			points[rank]++
		case len(open) > 0 && rng.IntN(5) < 2:
			receive(rng.IntN(len(open)))
		default:
			m := pending{uint32(rng.IntN(2)), rank, rng.IntN(n)}
			all[rank] = append(all[rank], op{kind: opSend, context: m.context, rank: m.dest})
			open = append(open, m)
		}
	}
	for len(open) > 0 {
		receive(rng.IntN(len(open)))
	}
	return all
}

// A memory is a hash of the values that a program has seen so far. Every payload contains it, so differences
// between replicas appear in their messages.
type memory uint64

func (m memory) with(values ...uint64) memory {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(nil, uint64(m))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	h.Write(b)
	return memory(h.Sum64())
}

func (m memory) payload() []byte { return binary.LittleEndian.AppendUint64(nil, uint64(m)) }
