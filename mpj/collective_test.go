package mpj

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

func TestMain(m *testing.M) {
	if program, ok := programs[os.Getenv(programVariable)]; ok {
		os.Exit(program())
	}
	goleak.VerifyTestMain(m)
}

// shapes are the jobs in which the collectives are tested.
var shapes = []localworld.Config{
	{Ranks: 1, Replicas: 1}, {Ranks: 2, Replicas: 1}, {Ranks: 3, Replicas: 1},
	{Ranks: 4, Replicas: 1, Sockets: true}, {Ranks: 5, Replicas: 1},
	{Ranks: 1, Replicas: 2}, {Ranks: 2, Replicas: 2}, {Ranks: 3, Replicas: 2},
	{Ranks: 5, Replicas: 2, Sockets: true}, {Ranks: 2, Replicas: 3},
}

// inEveryShape runs program as all processes of jobs of every shape.
func inEveryShape(t *testing.T, program func(*World) error) {
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("n=%d,r=%d", shape.Ranks, shape.Replicas), func(t *testing.T) {
			if err := runIn(localworld.New(context.Background(), shape), program); err != nil {
				t.Error(err)
			}
		})
	}
}

// want returns an error that describes the difference unless got equals want.
func want[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// data returns count elements of rank, the same at every call.
func data[T Ordered](rank, count int) []T {
	random := rand.New(rand.NewPCG(uint64(rank), uint64(count)))
	s := make([]T, count)
	for i := range s {
		s[i] = T(random.IntN(20))
	}
	return s
}

// everyone returns the data of all ranks, one after the other.
func everyone[T Ordered](n, count int) []T {
	var all []T
	for i := range n {
		all = append(all, data[T](i, count)...)
	}
	return all
}

// folded combines the data of ranks 0 to last in rank order.
func folded[T Ordered](last, count int, op Op[T]) []T {
	acc := data[T](0, count)
	for i := 1; i <= last; i++ {
		next := data[T](i, count)
		op(acc, next)
		acc = next
	}
	return acc
}

func TestCollectivesMatchTheirDefinitions(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for _, count := range []int{0, 1, 300} {
			for root := range w.Size() {
				err := first(
					checkRooted[int](w.Comm, count, root), checkRooted[uint8](w.Comm, count, root),
					checkRooted[float64](w.Comm, count, root),
				)
				if err != nil {
					return fmt.Errorf("count %d, root %d: %w", count, root, err)
				}
			}
			err := first(
				checkUnrooted[int16](w.Comm, count), checkUnrooted[float32](w.Comm, count),
			)
			if err != nil {
				return fmt.Errorf("count %d: %w", count, err)
			}
		}
		return nil
	})
}

func checkRooted[T Ordered](c *Comm, count, root int) error {
	n, me := c.Size(), data[T](c.Rank(), count)
	at := func(s []T) []T { // s at root, nil elsewhere
		if c.Rank() == root {
			return s
		}
		return nil
	}
	buf := slices.Clone(me)
	err1 := Bcast(c, buf, root)
	reduced := at(make([]T, count))
	err2 := Reduce(c, me, reduced, Sum, root)
	gathered := at(make([]T, n*count))
	err3 := Gather(c, me, gathered, root)
	scattered := make([]T, count)
	err4 := Scatter(c, at(everyone[T](n, count)), scattered, root)
	return first(err1, err2, err3, err4,
		want("Bcast", buf, data[T](root, count)),
		want("Reduce", reduced, at(folded(n-1, count, Sum[T]))),
		want("Gather", gathered, at(everyone[T](n, count))),
		want("Scatter", scattered, me))
}

func checkUnrooted[T Ordered](c *Comm, count int) error {
	n, me := c.Size(), data[T](c.Rank(), count)
	sum, least, scanned := make([]T, count), slices.Clone(me), make([]T, count)
	err1 := Allreduce(c, me, sum, Sum)
	err2 := Allreduce(c, least, least, Min) // in place
	err3 := Scan(c, me, scanned, Sum)
	all := make([]T, n*count)
	err4 := Allgather(c, me, all)
	swapped := make([]T, n*count)
	err5 := Alltoall(c, all, swapped)
	var mine []T
	for range n {
		mine = append(mine, me...)
	}
	return first(Barrier(c), err1, err2, err3, err4, err5,
		want("Allreduce sum", sum, folded(n-1, count, Sum[T])),
		want("Allreduce min", least, folded(n-1, count, Min[T])),
		want("Scan", scanned, folded(c.Rank(), count, Sum[T])),
		want("Allgather", all, everyone[T](n, count)),
		want("Alltoall", swapped, mine))
}

// TestVectorCollectivesMatchTheirDefinitions makes ranks contribute blocks of different lengths,
// with gaps between them.
func TestVectorCollectivesMatchTheirDefinitions(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := w.Size()
		counts, displs := make([]int, n), make([]int, n)
		length := 0
		for i := range n {
			counts[i], displs[i] = 3*i%4, length+1
			length += counts[i] + 2
		}
		whole := make([]int64, length)
		for i := range n {
			copy(whole[displs[i]:], data[int64](i, counts[i]))
		}
		me := data[int64](w.Rank(), counts[w.Rank()])
		for root := range n {
			if err := checkVector(w.Comm, me, whole, counts, displs, root); err != nil {
				return fmt.Errorf("root %d: %w", root, err)
			}
		}
		return checkTriangle(w.Comm)
	})
}

func checkVector(c *Comm, me, whole []int64, counts, displs []int, root int) error {
	gathered, everywhere := make([]int64, len(whole)), make([]int64, len(whole))
	scattered := make([]int64, len(me))
	err := first(
		Gatherv(c, me, gathered, counts, displs, root),
		Scatterv(c, whole, counts, displs, scattered, root),
		Allgatherv(c, me, everywhere, counts, displs),
		want("Scatterv", scattered, me),
		want("Allgatherv", everywhere, whole))
	if err == nil && c.Rank() == root {
		err = want("Gatherv", gathered, whole)
	}
	return err
}

// checkTriangle makes rank i send i+j elements of value 100*i+j to rank j.
func checkTriangle(c *Comm) error {
	counts := make([]int, c.Size())
	var send, expected []int
	for j := range counts {
		counts[j] = c.Rank() + j
		for range counts[j] {
			send = append(send, 100*c.Rank()+j)
			expected = append(expected, 100*j+c.Rank())
		}
	}
	recv := make([]int, len(send))
	return first(Alltoallv(c, send, counts, nil, recv, counts, nil), want("Alltoallv", recv, expected))
}

// TestOpsCombineRanksInOrder uses the composition of affine maps x -> a*x+b, which is associative
// but not commutative. A complex number represents one map.
func TestOpsCombineRanksInOrder(t *testing.T) {
	compose := Each(func(f, g complex128) complex128 {
		return complex(real(f)*real(g), imag(f)*real(g)+imag(g))
	})
	inEveryShape(t, func(w *World) error {
		expected := make([]complex128, w.Size()) // of the prefixes
		for i := range expected {
			expected[i] = complex(float64(i+2), float64(i))
			if i > 0 {
				next := expected[i : i+1]
				compose(expected[i-1:i], next)
			}
		}
		me := []complex128{complex(float64(w.Rank()+2), float64(w.Rank()))}
		all, prefix := make([]complex128, 1), make([]complex128, 1)
		return first(
			Allreduce(w.Comm, me, all, compose),
			Scan(w.Comm, me, prefix, compose),
			want("Allreduce", all, expected[w.Size()-1:]),
			want("Scan", prefix, expected[w.Rank():w.Rank()+1]))
	})
}

func TestPredefinedOps(t *testing.T) {
	cases := []struct {
		name string
		op   Op[int8]
		want []int8
	}{
		{"sum", Sum[int8], []int8{8, 6, 0}},
		{"prod", Prod[int8], []int8{12, 0, 0}},
		{"max", Max[int8], []int8{6, 6, 0}},
		{"min", Min[int8], []int8{2, 0, 0}},
		{"band", Band[int8], []int8{2, 0, 0}},
		{"bor", Bor[int8], []int8{6, 6, 0}},
		{"bxor", Bxor[int8], []int8{4, 6, 0}},
		{"land", Land[int8], []int8{1, 0, 0}},
		{"lor", Lor[int8], []int8{1, 1, 0}},
		{"lxor", Lxor[int8], []int8{0, 1, 0}},
	}
	for _, c := range cases {
		inout := []int8{6, 6, 0}
		c.op([]int8{2, 0, 0}, inout)
		if !slices.Equal(inout, c.want) {
			t.Errorf("%s of {2 0 0} and {6 6 0}: got %v, want %v", c.name, inout, c.want)
		}
	}
}
