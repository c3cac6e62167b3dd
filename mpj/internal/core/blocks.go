package core

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// A division divides a buffer into blocks: block i has counts[i] elements, starting at displs[i].
type division struct{ counts, displs []int }

// evenly returns n contiguous blocks of count elements.
func evenly(n, count int) division { return packed(filled(n, count)) }

// packed returns contiguous blocks.
func packed(counts []int) division {
	displs := make([]int, len(counts))
	for i := 1; i < len(counts); i++ {
		displs[i] = displs[i-1] + counts[i-1]
	}
	return division{counts, displs}
}

// among checks d, which the program passes for a buffer of length elements, and returns one block for
// each rank of c. Without displs, the blocks are contiguous. name is the name of the buffer.
func (d division) among(c *Comm, name string, length int) (division, error) {
	return d.check(c, name, length, c.size, "rank")
}

// check is among for n blocks, each for one rank or for one neighbour, which holder names.
func (d division) check(c *Comm, name string, length, n int, holder string) (division, error) {
	if len(d.counts) != n || d.displs != nil && len(d.displs) != n {
		return division{}, c.Failf(ErrCount, "%d counts and %d displacements of %s for %d %ss", len(d.counts), len(d.displs), name, n, holder)
	}
	if d.displs == nil {
		d = packed(d.counts)
	}
	for i, k := range d.counts {
		if k < 0 || d.displs[i] < 0 || d.displs[i] > length-k {
			return division{}, c.Failf(ErrCount, "%s has %d elements, but the block of %s %d has %d at offset %d", name, length, holder, i, k, d.displs[i])
		}
	}
	return d, nil
}

// end returns the end of the last block.
func (d division) end() int {
	last := len(d.counts) - 1
	return d.displs[last] + d.counts[last]
}

// of returns block i of b, whose elements have unit bytes.
func (d division) of(b []byte, i, unit int) []byte {
	return b[d.displs[i]*unit : (d.displs[i]+d.counts[i])*unit]
}

// inBytes returns d for elements of unit bytes.
func (d division) inBytes(unit int) collective.Blocks {
	return collective.Blocks{Unit: unit, Counts: d.counts, Displs: d.displs}
}

// everyPart returns the parts exchanged with each rank.
func everyPart(counts []int) []calls.Part {
	parts := make([]calls.Part, len(counts))
	for i, n := range counts {
		parts[i] = calls.Part{Rank: i, Count: n}
	}
	return parts
}

// placeOf returns where a rank's contribution is stored. An empty contribution fits both places.
func placeOf(inPlace, contributes bool) calls.Place {
	switch {
	case !contributes:
		return calls.Either
	case inPlace:
		return calls.InPlace
	}
	return calls.Apart
}

// plainCall returns a call whose arguments, if any, may differ between ranks.
func plainCall(own string) calls.Call {
	return calls.Call{Root: calls.None, Count: calls.None, Own: own}
}

// alikeCall returns a call whose arguments must be the same at all ranks.
func alikeCall(format string, arguments ...any) calls.Call {
	return calls.Call{Root: calls.None, Count: calls.None, Alike: fmt.Sprintf(format, arguments...)}
}
