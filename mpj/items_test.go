package mpj

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// multiply multiplies 2×2 matrices modulo 2^64, which is not commutative.
func multiply(in, inout []uint64) {
	for i := 0; i < len(in); i += 4 {
		a, b := in[i:i+4], slices.Clone(inout[i:i+4])
		for row := range 2 {
			for column := range 2 {
				inout[i+2*row+column] = a[2*row]*b[column] + a[2*row+1]*b[2+column]
			}
		}
	}
}

func someMatrices(rank, count int) []uint64 {
	m := make([]uint64, 4*count)
	for i := range m {
		m[i] = uint64(3*rank + i%11 + 1)
	}
	return m
}

// TestItemsAreNotSplit checks that no algorithm splits an item.
func TestItemsAreNotSplit(t *testing.T) {
	product := Items(4, multiply)
	for _, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for _, n := range []int{1, 3, 4} {
			for _, count := range []int{1, 3, 4, 250, 252} { // number of matrices
				err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: n, Replicas: 1}), func(w *World) error {
					return productsAreRight(w, product, count)
				})
				if err != nil {
					t.Fatalf("%q, n=%d, %d matrices: %v", forced, n, count, err)
				}
			}
		}
	}
}

func productsAreRight(w *World, product Op[uint64], count int) error {
	up := func(rank int) []uint64 {
		all := someMatrices(rank, count)
		for r := rank - 1; r >= 0; r-- {
			multiply(someMatrices(r, count), all)
		}
		return all
	}
	n, rank := w.Size(), w.Rank()
	mine, total := someMatrices(rank, count), up(n-1)
	atRoot, everywhere, prefix := make([]uint64, 4*count), make([]uint64, 4*count), make([]uint64, 4*count)
	counts := make([]int, n)
	counts[n-1] = 4 * count
	uneven := make([]uint64, counts[rank])
	err := first(Reduce(w.Comm, mine, atRoot, product, 0), Allreduce(w.Comm, mine, everywhere, product), Scan(w.Comm, mine, prefix, product),
		ReduceScatter(w.Comm, mine, uneven, counts, product),
		want("Allreduce", everywhere, total), want("Scan", prefix, up(rank)))
	if count%n == 0 {
		part := make([]uint64, 4*count/n)
		err = first(err, ReduceScatterBlock(w.Comm, mine, part, product), want("ReduceScatterBlock", part, total[rank*len(part):(rank+1)*len(part)]))
	}
	if rank == 0 {
		err = first(err, want("Reduce", atRoot, total))
	}
	if rank == n-1 {
		err = first(err, want("ReduceScatter", uneven, total))
	}
	return err
}

// TestIncompleteItemsAreRefused checks that a vector that is not a whole number of items is rejected
// before a message is sent.
func TestIncompleteItemsAreRefused(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		product, three, even := Items(4, multiply), make([]uint64, 3), make([]uint64, 6*w.Size())
		counts := make([]int, w.Size())
		counts[0] = len(even)
		for name, err := range map[string]error{
			"Allreduce":          Allreduce(w.Comm, nil, three, product),
			"Reduce":             Reduce(w.Comm, three, three, product, 0),
			"Scan":               Scan(w.Comm, nil, three, product),
			"ReduceScatterBlock": ReduceScatterBlock(w.Comm, even, make([]uint64, 6), product),
			"ReduceScatter":      ReduceScatter(w.Comm, nil, make([]uint64, 6), []int{6}, product),
			"ReduceLocal":        ReduceLocal(three, three, product),
			"empty items":        Allreduce(w.Comm, nil, three, Items(0, multiply)),
			"nothing at all":     ReduceScatterBlock(w.Comm, nil, three[:0], Items(0, multiply)),
		} {
			if !errors.Is(err, ErrCount) {
				return fmt.Errorf("%s: want ErrCount, got: %w", name, err)
			}
		}
		return first(want("nil", []bool{Items[int](2, nil) == nil}, []bool{true}), ReduceLocal(three[:0], three[:0], product))
	})
}
