package collective

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// itemSizes are the sizes of items in bytes.
var itemSizes = []int{1, 2, 3, 4, 16}

// A span is an item that stands for the combination of the contributions of ranks from..to-1. Its
// bytes are
//
//	from and to (4 bits each) | place of the byte | place of the byte ...
//
// so that the parts of a split item cannot be combined unnoticed.
func span(size, index, from, to int) []byte {
	b := make([]byte, size)
	b[0] = byte(from<<4 | to)
	for i := 1; i < size; i++ {
		b[i] = byte(index*7 + i)
	}
	return b
}

// spans returns count items.
func spans(size, first, count, from, to int) []byte {
	var b []byte
	for i := range count {
		b = append(b, span(size, first+i, from, to)...)
	}
	return b
}

// joined combines spans of neighbouring ranks. The operation is associative, but not commutative. It
// marks a result with 255 if the spans are not neighbours, or if the vectors are not whole items at
// the same place.
func joined(size int) Reduction {
	return Reduction{Size: size, Combine: func(in, inout []byte) {
		if len(in) == 0 || len(in) != len(inout) || len(in)%size != 0 {
			for i := range inout {
				inout[i] = 255
			}
			return
		}
		for i := 0; i < len(in); i += size {
			if in[i]&15 != inout[i]>>4 || !bytes.Equal(in[i+1:i+size], inout[i+1:i+size]) {
				inout[i] = 255
				continue
			}
			inout[i] = in[i]&0xf0 | inout[i]&15
		}
	}}
}

// itemCounts returns numbers of items with which every algorithm for n ranks splits a vector into
// parts of different lengths, some of them empty.
func itemCounts(n int) []int {
	counts := []int{0, 1, 2, 3, n - 1, n + 1, 2*n + 1, 37}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// placements returns levels of n ranks on machines of two and three ranks, in clusters of two
// machines, and nil for ranks on one machine.
func placements(n int) []*Levels {
	return []*Levels{
		nil,
		NewLevels(n, func(i int) (int, int) { return i / 2, i / 4 }),
		NewLevels(n, func(i int) (int, int) { return (i + 1) / 3, (i + 1) / 6 }),
	}
}

// TestNoAlgorithmSplitsAnItem checks that reductions of items have the results of their definition
// with every algorithm, and never combine parts of items.
func TestNoAlgorithmSplitsAnItem(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8} {
		err := inTeam(n, func(t *Team) error {
			for _, size := range itemSizes {
				for _, count := range itemCounts(n) {
					for _, l := range placements(n) {
						t.Levels = l
						if err := t.reduceItems(size, count); err != nil {
							return fmt.Errorf("items of %d bytes, %d items, %d ranks: %w", size, count, n, err)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// reduceItems carries out all reductions of count items with each of their algorithms for one
// machine or, with levels, for several.
func (t *Team) reduceItems(size, count int) error {
	for _, c := range []struct {
		op   Operation
		call func(size, count int) error
	}{
		{Reduce, t.itemsAtRoot}, {Allreduce, t.itemsEverywhere}, {Scan, t.itemsOfLowerRanks},
		{ReduceScatter, t.itemsInEvenBlocks}, {ReduceScatter, t.itemsInUnevenBlocks},
	} {
		for _, a := range usable[c.op] {
			if (a == Levelled) != (t.Levels != nil) {
				continue
			}
			t.Forced = new(Forced)
			t.Forced[c.op] = a
			if err := c.call(size, count); err != nil {
				return fmt.Errorf("%v=%v: %w", c.op, a, err)
			}
		}
	}
	return nil
}

func (t *Team) itemsAtRoot(size, count int) error {
	root := count % t.Size
	mine, total := spans(size, 0, count, t.Rank, t.Rank+1), make([]byte, size*count)
	if err := t.Reduce(mine, total, joined(size), root); err != nil || t.Rank != root {
		return err
	}
	return sameItems(total, spans(size, 0, count, 0, t.Size))
}

func (t *Team) itemsEverywhere(size, count int) error {
	mine, total := spans(size, 0, count, t.Rank, t.Rank+1), make([]byte, size*count)
	if err := t.Allreduce(mine, total, joined(size)); err != nil {
		return err
	}
	return sameItems(total, spans(size, 0, count, 0, t.Size))
}

func (t *Team) itemsOfLowerRanks(size, count int) error {
	acc, mine := spans(size, 0, count, t.Rank, t.Rank+1), spans(size, 0, count, t.Rank, t.Rank+1)
	lower := make([]byte, size*count)
	if err := t.Scan(acc, joined(size)); err != nil {
		return err
	}
	if err := t.Exscan(mine, lower, joined(size)); err != nil {
		return err
	}
	if err := sameItems(acc, spans(size, 0, count, 0, t.Rank+1)); err != nil || t.Rank == 0 {
		return err
	}
	return sameItems(lower, spans(size, 0, count, 0, t.Rank))
}

func (t *Team) itemsInEvenBlocks(size, count int) error {
	mine, part := spans(size, 0, count*t.Size, t.Rank, t.Rank+1), make([]byte, size*count)
	if err := t.ReduceScatter(mine, Even(size*count), part, joined(size)); err != nil {
		return err
	}
	return sameItems(part, spans(size, t.Rank*count, count, 0, t.Size))
}

// itemsInUnevenBlocks gives rank i a block of (count+i)%3*count items.
func (t *Team) itemsInUnevenBlocks(size, count int) error {
	b, total := Blocks{Unit: size}, 0
	for i := range t.Size {
		b.Displs = append(b.Displs, total)
		b.Counts = append(b.Counts, (count+i)%3*count)
		total += b.Counts[i]
	}
	mine, part := spans(size, 0, total, t.Rank, t.Rank+1), make([]byte, size*b.Counts[t.Rank])
	if err := t.ReduceScatter(mine, b, part, joined(size)); err != nil {
		return err
	}
	return sameItems(part, spans(size, b.Displs[t.Rank], b.Counts[t.Rank], 0, t.Size))
}

func sameItems(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}
