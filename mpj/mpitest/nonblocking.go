package mpitest

import (
	"cmp"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// Non-blocking collectives (MPI 4.0, 6.13).
var nonblocking = []Test{
	{"every collective has a nonblocking form", 1, true, everyStarted},
	{"many collectives are in progress at once", 1, true, manyStarted},
	{"ibarrier completes when all ranks have started it", 2, true, ibarrier},
	{"blocking and nonblocking collectives mix", 1, true, mixed},
}

// everyStarted starts all collectives and waits for them together.
func everyStarted(w *mpj.World) error {
	for _, count := range []int{1, 3000} {
		if err := startedTogether(w.Comm, count); err != nil {
			return fmt.Errorf("%d elements: %w", count, err)
		}
	}
	return nil
}

func startedTogether(c *mpj.Comm, count int) error {
	n, root := c.Size(), c.Size()-1
	me, whole := seq[int32](c.Rank(), count), seq[int32](c.Rank(), n*count)
	part, parts := func() []int32 { return make([]int32, count) }, func() []int32 { return make([]int32, n*count) }
	cast := part()
	if c.Rank() == root {
		copy(cast, me)
	}
	each := make([]int, n)
	for i := range each {
		each[i] = count
	}
	var rs []*mpj.Request
	var failed error
	begin := func(r *mpj.Request, err error) { rs, failed = append(rs, r), cmp.Or(failed, err) }
	gathered, gatheredv, scattered, scatteredv := parts(), parts(), part(), part()
	everywhere, everywherev, swapped, swappedv := parts(), parts(), parts(), parts()
	sum, sums, prefix, before, block, blockv := part(), part(), part(), part(), part(), part()
	begin(mpj.Ibarrier(c))
	begin(mpj.Ibcast(c, cast, root))
	begin(mpj.Igather(c, me, gathered, root))
	begin(mpj.Igatherv(c, me, gatheredv, each, nil, root))
	begin(mpj.Iscatter(c, all[int32](n, count), scattered, root))
	begin(mpj.Iscatterv(c, all[int32](n, count), each, nil, scatteredv, root))
	begin(mpj.Iallgather(c, me, everywhere))
	begin(mpj.Iallgatherv(c, me, everywherev, each, nil))
	begin(mpj.Ialltoall(c, whole, swapped))
	begin(mpj.Ialltoallv(c, whole, each, nil, swappedv, each, nil))
	begin(mpj.Ireduce(c, me, sum, mpj.Sum, root))
	begin(mpj.Iallreduce(c, me, sums, mpj.Sum))
	begin(mpj.Iscan(c, me, prefix, mpj.Sum))
	begin(mpj.Iexscan(c, me, before, mpj.Sum))
	begin(mpj.IreduceScatterBlock(c, whole, block, mpj.Sum))
	begin(mpj.IreduceScatter(c, whole, blockv, each, mpj.Sum))
	if failed != nil {
		return failed
	}
	if _, err := mpj.Waitall(rs...); err != nil {
		return err
	}
	everyone, total := all[int32](n, count), fold(n-1, count, mpj.Sum[int32], seq[int32])
	mine := fold(n-1, n*count, mpj.Sum[int32], seq[int32])[c.Rank()*count : (c.Rank()+1)*count]
	var err error
	if c.Rank() == root {
		err = cmp.Or(same("Igather", gathered, everyone), same("Igatherv", gatheredv, everyone), same("Ireduce", sum, total))
	}
	if c.Rank() > 0 {
		err = cmp.Or(err, same("Iexscan", before, fold(c.Rank()-1, count, mpj.Sum[int32], seq[int32])))
	}
	column := columns[int32](n, c.Rank(), count)
	return cmp.Or(err, same("Ibcast", cast, seq[int32](root, count)), same("Iscatter", scattered, me), same("Iscatterv", scatteredv, me),
		same("Iallgather", everywhere, everyone), same("Iallgatherv", everywherev, everyone), same("Ialltoall", swapped, column),
		same("Ialltoallv", swappedv, column), same("Iallreduce", sums, total), same("Iscan", prefix, fold(c.Rank(), count, mpj.Sum[int32], seq[int32])),
		same("IreduceScatterBlock", block, mine), same("IreduceScatter", blockv, mine))
}

// manyStarted starts more collectives at once than a communicator has slots.
func manyStarted(w *mpj.World) error {
	const many = 100
	rs, sums := make([]*mpj.Request, many), make([][1]int, many)
	for i := range many {
		var err error
		if rs[i], err = mpj.Iallreduce(w.Comm, []int{w.Rank() + i}, sums[i][:], mpj.Sum); err != nil {
			return err
		}
	}
	for i := range rs { // in reverse order
		if _, err := rs[many-1-i].Wait(); err != nil {
			return err
		}
	}
	for i, s := range sums {
		if err := equal("sum", s[0], w.Size()*(w.Size()-1)/2+i*w.Size()); err != nil {
			return err
		}
	}
	return nil
}

// ibarrier starts the barrier at the last rank only after rank 0 has reported that its own barrier
// is not complete.
func ibarrier(w *mpj.World) error {
	last, buf := w.Size()-1, make([]byte, 1)
	if w.Rank() == last {
		if _, err := mpj.Recv(w.Comm, buf, 0, 0); err != nil {
			return err
		}
	}
	r, err := mpj.Ibarrier(w.Comm)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		_, done, err := r.Test()
		if err := cmp.Or(err, equal("complete", done, false), mpj.Send(w.Comm, buf, last, 0)); err != nil {
			return err
		}
	}
	_, err = r.Wait()
	return err
}

func mixed(w *mpj.World) error {
	sum, cast := make([]int, 1), []int{w.Rank()}
	r, err := mpj.Iallreduce(w.Comm, []int{1}, sum, mpj.Sum)
	if err := cmp.Or(err, mpj.Bcast(w.Comm, cast, 0), mpj.Barrier(w.Comm)); err != nil {
		return err
	}
	_, err = r.Wait()
	return cmp.Or(err, equal("sum", sum[0], w.Size()), equal("bcast", cast[0], 0))
}
