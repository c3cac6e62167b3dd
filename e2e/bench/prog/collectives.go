package main

import (
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// collective returns one operation of a collective, or nil when the test is not a collective. The
// root of the i-th operation is rank i mod n. Each root must have finished the previous operation
// before it can begin, so no root runs ahead of the others.
func collective(c *mpj.Comm, item plan.Item) func(i int) error {
	n := c.Size()
	switch item.Test {
	case plan.Barrier:
		return func(int) error { return mpj.Barrier(c) }
	case plan.Bcast:
		buf := plan.Touched[byte](item.Bytes)
		return func(i int) error { return mpj.Bcast(c, buf, i%n) }
	case plan.Reduce:
		send, recv := plan.Touched[float64](item.Bytes/8), plan.Touched[float64](item.Bytes/8)
		return func(i int) error { return mpj.Reduce(c, send, recv, mpj.Sum, i%n) }
	case plan.Allreduce:
		send, recv := plan.Touched[float64](item.Bytes/8), plan.Touched[float64](item.Bytes/8)
		return func(int) error { return mpj.Allreduce(c, send, recv, mpj.Sum) }
	case plan.Allgather:
		send, recv := plan.Touched[byte](item.Bytes), plan.Touched[byte](n*item.Bytes)
		return func(int) error { return mpj.Allgather(c, send, recv) }
	case plan.Alltoall:
		send, recv := plan.Touched[byte](n*item.Bytes), plan.Touched[byte](n*item.Bytes)
		return func(int) error { return mpj.Alltoall(c, send, recv) }
	}
	return nil
}
