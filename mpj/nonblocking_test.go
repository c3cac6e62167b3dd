package mpj

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// TestNonBlockingCollectivesMatchTheirDefinitions runs all kinds at the same time, and waits for
// them in the reverse order.
func TestNonBlockingCollectivesMatchTheirDefinitions(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for _, count := range []int{1, 300} {
			b := newBackground(w.Comm, count)
			slices.Reverse(b.requests)
			if _, err := Waitall(b.requests...); err != nil {
				return err
			}
			if err := b.check(); err != nil {
				return fmt.Errorf("count %d: %w", count, err)
			}
		}
		return nil
	})
}

// A background contains one nonblocking collective of every kind.
type background struct {
	*Comm
	requests []*Request
	started  error
	checks   []func() error
}

func (b *background) add(name string, r *Request, err error, got, wanted []uint64) {
	b.started = first(b.started, err)
	b.requests = append(b.requests, r)
	b.checks = append(b.checks, func() error { return want(name, got, wanted) })
}

func (b *background) check() error {
	err := b.started
	for _, check := range b.checks {
		err = first(err, check())
	}
	return err
}

func newBackground(c *Comm, count int) *background {
	b := &background{Comm: c}
	me, n := c.Rank(), c.Size()
	root := n - 1
	b.addVectors(me, n, count, root)
	b.addBlocks(me, n, count, root)
	r, err := Ibarrier(c)
	b.add("Ibarrier", r, err, nil, nil)
	return b
}

func (b *background) addVectors(me, n, count, root int) {
	c, mine := b.Comm, elements(me, count)
	whole := combined(0, n, count)
	buf := slices.Clone(mine)
	r, err := Ibcast(c, buf, root)
	b.add("Ibcast", r, err, buf, elements(root, count))
	reduced := make([]uint64, count)
	wanted := make([]uint64, count)
	if me == root {
		wanted = whole
	}
	r, err = Ireduce(c, mine, reduced, compose, root)
	b.add("Ireduce", r, err, reduced, wanted)
	all := make([]uint64, count)
	r, err = Iallreduce(c, mine, all, compose)
	b.add("Iallreduce", r, err, all, whole)
	scanned := make([]uint64, count)
	r, err = Iscan(c, mine, scanned, compose)
	b.add("Iscan", r, err, scanned, combined(0, me+1, count))
	before, wanted := make([]uint64, count), make([]uint64, count)
	if me > 0 {
		wanted = combined(0, me, count)
	}
	r, err = Iexscan(c, mine, before, compose)
	b.add("Iexscan", r, err, before, wanted)
}

func (b *background) addBlocks(me, n, count, root int) {
	c, mine, pieces := b.Comm, elements(me, count), elements(me, n*count)
	counts := slices.Repeat([]int{count}, n)
	var everyones, swapped []uint64
	for i := range n {
		everyones = append(everyones, elements(i, count)...)
		swapped = append(swapped, elements(i, n*count)[me*count:(me+1)*count]...)
	}
	part := combined(0, n, n*count)[me*count : (me+1)*count]
	at := func() (got, wanted []uint64) {
		if me == root {
			return make([]uint64, n*count), everyones
		}
		return nil, nil
	}
	got, wanted := at()
	r, err := Igather(c, mine, got, root)
	b.add("Igather", r, err, got, wanted)
	got, wanted = at()
	r, err = Igatherv(c, mine, got, counts, nil, root)
	b.add("Igatherv", r, err, got, wanted)
	buffer := func(length int) []uint64 { got = make([]uint64, length); return got }
	r, err = Iscatter(c, wanted, buffer(count), root)
	b.add("Iscatter", r, err, got, mine)
	r, err = Iscatterv(c, wanted, counts, nil, buffer(count), root)
	b.add("Iscatterv", r, err, got, mine)
	r, err = Iallgather(c, mine, buffer(n*count))
	b.add("Iallgather", r, err, got, everyones)
	r, err = Iallgatherv(c, mine, buffer(n*count), counts, nil)
	b.add("Iallgatherv", r, err, got, everyones)
	r, err = Ialltoall(c, pieces, buffer(n*count))
	b.add("Ialltoall", r, err, got, swapped)
	r, err = Ialltoallv(c, pieces, counts, nil, buffer(n*count), counts, nil)
	b.add("Ialltoallv", r, err, got, swapped)
	r, err = IreduceScatterBlock(c, pieces, buffer(count), compose)
	b.add("IreduceScatterBlock", r, err, got, part)
	r, err = IreduceScatter(c, pieces, buffer(count), counts, compose)
	b.add("IreduceScatter", r, err, got, part)
}

// TestNonBlockingCollectivesProgressInBackground checks that a rank takes part in the collectives
// that it has started even while it makes no calls of mpj.
func TestNonBlockingCollectivesProgressInBackground(t *testing.T) {
	computed := make(chan bool)
	err := RunLocal(context.Background(), 3, func(w *World) error {
		sum := make([]int, 1<<16)
		r, err := Iallreduce(w.Comm, slices.Repeat([]int{w.Rank()}, 1<<16), sum, Sum)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			<-computed // wait until the other ranks have their results
		}
		if _, err = r.Wait(); w.Rank() == 1 {
			close(computed)
		}
		return first(err, want("sum", sum[:1], []int{3}))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestR2NonBlockingCollectivesSurviveKills(t *testing.T) {
	kills(t, 2, func(tr *trial, w *World) error {
		sums := make([]int, 4)
		for round := range 20 {
			var requests []*Request
			for k := range sums {
				r, err := Iallreduce(w.Comm, []int{round * (w.Rank() + k)}, sums[k:k+1], Sum)
				if err != nil {
					return err
				}
				requests = append(requests, r)
			}
			i, _, err := Waitany(requests...)
			if err != nil {
				return err
			}
			tr.see(w, "%d first", i)
			if _, err := Waitall(requests...); err != nil {
				return err
			}
			if err := want("sums", sums, []int{3 * round, 6 * round, 9 * round, 12 * round}); err != nil {
				return err
			}
			tr.see(w, "%v", sums)
		}
		return nil
	})
}

func TestCollectivesInPlace(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		for _, count := range []int{1, 7, 900} {
			if err := first(inPlaceVectors(w.Comm, count), inPlaceBlocks(w.Comm, count)); err != nil {
				return fmt.Errorf("count %d: %w", count, err)
			}
		}
		return nil
	})
}

func inPlaceVectors(c *Comm, count int) error {
	me, n, root := c.Rank(), c.Size(), c.Size()-1
	reduced, all, scanned, before := elements(me, count), elements(me, count), elements(me, count), elements(me, count)
	wantReduced, wantBefore := slices.Clone(reduced), slices.Clone(reduced)
	send := reduced
	if me == root {
		send, wantReduced = nil, combined(0, n, count)
	}
	if me > 0 {
		wantBefore = combined(0, me, count)
	}
	return first(
		Reduce(c, send, reduced, compose, root), want("Reduce", reduced, wantReduced),
		Allreduce(c, nil, all, compose), want("Allreduce", all, combined(0, n, count)),
		Scan(c, nil, scanned, compose), want("Scan", scanned, combined(0, me+1, count)),
		Exscan(c, nil, before, compose), want("Exscan", before, wantBefore))
}

func inPlaceBlocks(c *Comm, count int) error {
	me, n, root := c.Rank(), c.Size(), c.Size()-1
	var everyones, swapped []uint64
	for i := range n {
		everyones = append(everyones, elements(i, count)...)
		swapped = append(swapped, elements(i, n*count)[me*count:(me+1)*count]...)
	}
	mine, counts := elements(me, count), slices.Repeat([]int{count}, n)
	own := func() []uint64 { // a buffer that contains only the rank's own block
		s := make([]uint64, n*count)
		copy(s[me*count:], mine)
		return s
	}
	gathered, send, part := own(), mine, slices.Clone(mine)
	wantGathered, scattered := slices.Clone(gathered), []uint64(nil)
	if me == root {
		send, wantGathered, scattered, part = nil, everyones, slices.Clone(everyones), nil
	}
	everywhere, everywherev := own(), own()
	pieces, piecesv := elements(me, n*count), elements(me, n*count)
	block, blockv := elements(me, n*count), elements(me, n*count)
	wantBlock := combined(0, n, n*count)[me*count : (me+1)*count]
	return first(
		Gather(c, send, gathered, root), want("Gather", gathered, wantGathered),
		Scatter(c, scattered, part, root), want("Scatter", append(part, scattered...)[:1], append(slices.Clone(part), everyones...)[:1]),
		Allgather(c, nil, everywhere), want("Allgather", everywhere, everyones),
		Allgatherv(c, nil, everywherev, counts, nil), want("Allgatherv", everywherev, everyones),
		Alltoall(c, nil, pieces), want("Alltoall", pieces, swapped),
		Alltoallv(c, nil, nil, nil, piecesv, counts, nil), want("Alltoallv", piecesv, swapped),
		ReduceScatterBlock(c, nil, block, compose), want("ReduceScatterBlock", block[:count], wantBlock),
		ReduceScatter(c, nil, blockv, counts, compose), want("ReduceScatter", blockv[:count], wantBlock))
}

// TestAlltoallwMovesDatatypes sends items of different datatypes to every rank: column j of a
// matrix becomes a row at rank j.
func TestAlltoallwMovesDatatypes(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := w.Size()
		matrix, got, wanted := make([]int32, n*n), make([]int32, n*n), make([]int32, n*n)
		send, recv := make([]Typed, n), make([]Typed, n)
		for i := range n {
			for j := range n {
				matrix[i*n+j] = int32(100*w.Rank() + 10*i + j)
				wanted[i*n+j] = int32(100*i + 10*j + w.Rank())
			}
			send[i] = TypeOf[int32]().Vector(n, 1, n).At(matrix, i, 1)
			recv[i] = TypeOf[int32]().Contiguous(n).At(got, i*n, 1)
		}
		r, err := Ialltoallw(w.Comm, send, recv)
		if err != nil {
			return err
		}
		_, err = r.Wait()
		err = first(err, want("Ialltoallw", got, wanted))
		clear(got)
		return first(err, Alltoallw(w.Comm, send, recv), want("Alltoallw", got, wanted))
	})
}

// TestLocReductionsFindTheFirst checks that Loc reductions find a value and the lowest rank with
// that value.
func TestLocReductionsFindTheFirst(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		n := w.Size()
		mine := []Loc[float64]{{float64(w.Rank() / 2), int64(w.Rank())}}
		least, most := make([]Loc[float64], 1), make([]Loc[float64], 1)
		top := (n - 1) / 2
		return first(
			Allreduce(w.Comm, mine, least, MinLoc), want("MinLoc", least, []Loc[float64]{{0, 0}}),
			Allreduce(w.Comm, mine, most, MaxLoc), want("MaxLoc", most, []Loc[float64]{{float64(top), int64(2 * top)}}))
	})
}

func TestUnknownAlgorithmIsAnError(t *testing.T) {
	t.Setenv(collectiveVariable, "bcast=binomial,allreduce=telepathy")
	err := RunLocal(context.Background(), 1, func(w *World) error { return Barrier(w.Comm) })
	if !errors.Is(err, ErrArg) || !strings.Contains(err.Error(), `P2PMPI_COLL: unknown algorithm "allreduce=telepathy" of allreduce: want one of [binomial recursive-doubling`) {
		t.Errorf("RunLocal with an unknown algorithm returned %v", err)
	}
}

func TestForcedAlgorithmsComeFromTheEnvironment(t *testing.T) {
	t.Setenv(collectiveVariable, "allreduce=ring")
	err := RunLocal(context.Background(), 3, func(w *World) error {
		if got, err := forcedByUser(); err != nil || got[collective.Allreduce] != collective.Ring {
			t.Errorf("the forced algorithm is %v, %v, want ring", got, err)
		}
		return Allreduce(w.Comm, nil, make([]int, 10), Sum)
	})
	if err != nil {
		t.Error(err)
	}
}
