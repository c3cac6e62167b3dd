package mpj

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// compose is the composition of affine maps over the integers modulo 2^32, with the factor in the
// upper half of an element. It is associative but not commutative.
var compose = Each(func(f, g uint64) uint64 {
	a, b, c, d := f>>32, f&math.MaxUint32, g>>32, g&math.MaxUint32
	return a*c<<32 | (b*c+d)&math.MaxUint32
})

// A trialCall contains the parameters of one run of all collectives. Every rank uses the same
// trialCall.
type trialCall struct {
	algorithms *collective.Forced
	places     []core.Place
	count      int // elements of a vector, or of a block
	root       int
	random     *rand.Rand
}

func (tc trialCall) String() string {
	return fmt.Sprintf("algorithms %v, places %v, count %d, root %d", tc.algorithms, tc.places, tc.count, tc.root)
}

// elements returns rank's contribution of count elements.
func elements(rank, count int) []uint64 {
	s := make([]uint64, count)
	for i := range s {
		s[i] = uint64(rank+1)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9 | 1<<32
	}
	return s
}

// combined combines the contributions of ranks from..to-1.
func combined(from, to, count int) []uint64 {
	acc := elements(from, count)
	for i := from + 1; i < to; i++ {
		next := elements(i, count)
		compose(acc, next)
		acc = next
	}
	return acc
}

// randomPlaces distributes n ranks over machines in clusters, in runs or scattered.
func randomPlaces(random *rand.Rand, n int, scattered bool) []core.Place {
	places := make([]core.Place, n)
	machine := 0
	for i := range places {
		if random.IntN(2) == 0 {
			machine++
		}
		places[i] = core.Place{Machine: machine, Cluster: machine / 2}
	}
	if scattered {
		random.Shuffle(n, func(i, j int) { places[i], places[j] = places[j], places[i] })
	}
	return places
}

// trialCalls returns calls that use every algorithm, for n ranks.
func trialCalls(random *rand.Rand, n int) []trialCall {
	forces := []*collective.Forced{nil}
	most := 0
	for op := collective.Barrier; op <= collective.Scan; op++ {
		most = max(most, len(collective.Algorithms(op)))
	}
	for i := range most {
		f := new(collective.Forced)
		for op := range f {
			all := collective.Algorithms(collective.Operation(op))
			f[op] = all[i%len(all)]
		}
		forces = append(forces, f)
	}
	var calls []trialCall
	for i, f := range forces {
		for j, count := range []int{i % 2, 1 + random.IntN(50), 600} { // heads do not forward blocks of 600 elements
			tc := trialCall{algorithms: f, count: count, root: random.IntN(n)}
			if kind := (i + j) % 3; kind > 0 {
				tc.places = randomPlaces(random, n, kind == 2)
			}
			calls = append(calls, tc)
		}
	}
	if n != 5 {
		return calls
	}
	for _, f := range forces { // large enough that a chain has several segments
		calls = append(calls, trialCall{algorithms: f, count: 17000, root: random.IntN(n)})
	}
	return calls
}

// inEveryWay runs check in jobs of 1 to 9 ranks with every algorithm.
func inEveryWay(t *testing.T, seed uint64, check func(*World, trialCall) error) {
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			calls := trialCalls(rand.New(rand.NewPCG(seed, uint64(n))), n)
			err := RunLocal(context.Background(), n, func(w *World) error {
				for i, tc := range calls {
					core.SetAlgorithms(&w.base, tc.algorithms, nil)
					core.SetPlaces(&w.base, tc.places)
					tc.random = rand.New(rand.NewPCG(seed, uint64(i)))
					if err := check(w, tc); err != nil {
						return fmt.Errorf("seed %d, %v: %w", seed, tc, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryAlgorithmMatchesTheDefinition(t *testing.T) {
	inEveryWay(t, rand.Uint64(), func(w *World, tc trialCall) error {
		if err := checkVectors(w.Comm, tc); err != nil {
			return err
		}
		if tc.count > 600 {
			return nil
		}
		return first(checkEven(w.Comm, tc), checkUneven(w.Comm, tc), Barrier(w.Comm))
	})
}

// checkVectors checks the collectives that have one vector at each rank.
func checkVectors(c *Comm, tc trialCall) error {
	me, n := c.Rank(), c.Size()
	mine := elements(me, tc.count)
	buf, all, scanned, before := slices.Clone(mine), make([]uint64, tc.count), make([]uint64, tc.count), elements(99, tc.count)
	var reduced []uint64
	wantReduced, wantBefore := []uint64(nil), elements(99, tc.count)
	if me == tc.root {
		reduced, wantReduced = make([]uint64, tc.count), combined(0, n, tc.count)
	}
	if me > 0 {
		wantBefore = combined(0, me, tc.count)
	}
	return first(
		Bcast(c, buf, tc.root), want("Bcast", buf, elements(tc.root, tc.count)),
		Reduce(c, mine, reduced, compose, tc.root), want("Reduce", reduced, wantReduced),
		Allreduce(c, mine, all, compose), want("Allreduce", all, combined(0, n, tc.count)),
		Scan(c, mine, scanned, compose), want("Scan", scanned, combined(0, me+1, tc.count)),
		Exscan(c, mine, before, compose), want("Exscan", before, wantBefore),
		want("send", mine, elements(me, tc.count)))
}

// checkEven checks the collectives that have one block of the same length for each rank.
func checkEven(c *Comm, tc trialCall) error {
	me, n, count := c.Rank(), c.Size(), tc.count
	mine := elements(me, count)
	var everyones, gathered, wantGathered []uint64
	for i := range n {
		everyones = append(everyones, elements(i, count)...)
	}
	if me == tc.root {
		gathered, wantGathered = make([]uint64, n*count), everyones
	}
	whole, swapped, scattered := make([]uint64, n*count), make([]uint64, n*count), make([]uint64, count)
	pieces := elements(me, n*count) // one piece for each rank
	var wantSwapped []uint64
	for i := range n {
		wantSwapped = append(wantSwapped, elements(i, n*count)[me*count:(me+1)*count]...)
	}
	part := make([]uint64, count)
	return first(
		Gather(c, mine, gathered, tc.root), want("Gather", gathered, wantGathered),
		Allgather(c, mine, whole), want("Allgather", whole, everyones),
		Scatter(c, wantGathered, scattered, tc.root), want("Scatter", scattered, mine),
		Alltoall(c, pieces, swapped), want("Alltoall", swapped, wantSwapped),
		ReduceScatterBlock(c, pieces, part, compose),
		want("ReduceScatterBlock", part, combined(0, n, n*count)[me*count:(me+1)*count]),
		want("send", pieces, elements(me, n*count)))
}

// checkUneven checks the collectives that have blocks of different lengths, with gaps.
func checkUneven(c *Comm, tc trialCall) error {
	me, n := c.Rank(), c.Size()
	counts, displs, matrix := make([]int, n), make([]int, n), make([]int, n*n)
	total, end := 0, 0
	for i := range n {
		counts[i] = tc.random.IntN(tc.count/n + 2)
		displs[i] = end + tc.random.IntN(3)
		end = displs[i] + counts[i]
		total += counts[i]
	}
	for i := range matrix {
		matrix[i] = tc.random.IntN(tc.count/n + 2)
	}
	mine := elements(me, counts[me])
	whole := make([]uint64, end)
	for i := range n {
		copy(whole[displs[i]:], elements(i, counts[i]))
	}
	var gathered, wantGathered []uint64
	if me == tc.root {
		gathered, wantGathered = make([]uint64, end), whole
	}
	everywhere, scattered, part := make([]uint64, end), make([]uint64, counts[me]), make([]uint64, counts[me])
	from := 0
	for i := range me {
		from += counts[i]
	}
	return first(
		Gatherv(c, mine, gathered, counts, displs, tc.root), want("Gatherv", gathered, wantGathered),
		Allgatherv(c, mine, everywhere, counts, displs), want("Allgatherv", everywhere, whole),
		Scatterv(c, wantGathered, counts, displs, scattered, tc.root), want("Scatterv", scattered, mine),
		ReduceScatter(c, elements(me, total), part, counts, compose),
		want("ReduceScatter", part, combined(0, n, total)[from:from+counts[me]]),
		checkMatrix(c, matrix))
}

// checkMatrix makes rank i send matrix[i*n+j] elements to rank j.
func checkMatrix(c *Comm, matrix []int) error {
	me, n := c.Rank(), c.Size()
	out, in := matrix[me*n:(me+1)*n], make([]int, n)
	var send, expected []uint64
	for j := range n {
		send = append(send, elements(me*n+j, out[j])...)
		in[j] = matrix[j*n+me]
		expected = append(expected, elements(j*n+me, in[j])...)
	}
	recv := make([]uint64, len(expected))
	return first(Alltoallv(c, send, out, nil, recv, in, nil), want("Alltoallv", recv, expected))
}

// folding returns the sum of the fractions of width ranks starting with from, along the tree that
// the collectives guarantee.
func folding(from, n, width int) float64 {
	if width == 1 {
		return fraction(from)
	}
	left := folding(from, n, width/2)
	if from+width/2 >= n {
		return left
	}
	return left + folding(from+width/2, n, width/2)
}

// fraction is rank's contribution to a sum whose bits depend on the order.
func fraction(rank int) float64 { return math.Pow(-1.37, float64(3*rank)) / 3 }

// TestSumsHaveTheSameBitsWithEveryAlgorithm checks that the bits of a sum depend only on the number
// of ranks, and not on the algorithm, the root, the placement of ranks, or timing.
func TestSumsHaveTheSameBitsWithEveryAlgorithm(t *testing.T) {
	inEveryWay(t, rand.Uint64(), checkBits)
}

func checkBits(w *World, tc trialCall) error {
	n := w.Size()
	sum := folding(0, n, 16)
	mine, recv, root := make([]float64, tc.count), make([]float64, tc.count), make([]float64, tc.count)
	wanted := make([]float64, tc.count)
	for i := range mine {
		mine[i], wanted[i] = fraction(w.Rank()), sum
	}
	for range rand.IntN(20) {
		runtime.Gosched()
	}
	part := make([]float64, tc.count)
	err := first(
		Allreduce(w.Comm, mine, recv, Sum), want("Allreduce", recv, wanted), Reduce(w.Comm, mine, root, Sum, tc.root),
		ReduceScatterBlock(w.Comm, slices.Repeat(mine, n), part, Sum), want("ReduceScatterBlock", part, wanted))
	if err == nil && w.Rank() == tc.root {
		err = want("Reduce", root, wanted)
	}
	return err
}

func TestSumsHaveTheSameBitsAtAllReplicas(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for round := range 6 {
			if err := checkBits(w, trialCall{count: 1 + 2000*round, root: round % w.Size()}); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestCollectivesOnDifferentCommunicatorsAreSeparate checks that collectives on different
// communicators do not wait for each other, whatever the order in which goroutines call them.
func TestCollectivesOnDifferentCommunicatorsAreSeparate(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		err := runIn(localworld.New(context.Background(), localworld.Config{Ranks: 4, Replicas: replicas}), func(w *World) error {
			comms := []*Comm{w.Comm}
			for k := range 3 {
				d, err := w.Split((w.Rank()*k)%2, -w.Rank())
				if err != nil {
					return err
				}
				comms = append(comms, d)
			}
			done := make(chan error, len(comms))
			for _, c := range comms {
				go func() { // ends after its rounds, or with the world
					var err error
					for round := 0; round < 10 && err == nil; round++ {
						err = checkVectors(c, trialCall{count: 1 + 13*round, root: round % c.Size()})
					}
					done <- err
				}()
			}
			var err error
			for range comms {
				err = first(err, <-done)
			}
			return err
		})
		if err != nil {
			t.Errorf("r=%d: %v", replicas, err)
		}
	}
}
