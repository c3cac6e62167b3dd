package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// bytesAdded is an operation on elements of one byte.
var bytesAdded = Op{Length: 1, Unit: 1, Combine: func(in, inout []byte) {
	for i, v := range in {
		inout[i] += v
	}
}}

// of returns a buffer argument of elements of one byte.
func of(b []byte) Elements {
	return Elements{Bytes: b, Length: len(b), Unit: 1, Null: b == nil}
}

// TestPlansRunRepeatedly checks that a Plan can be carried out several times, blocking and in the
// background, each time with the present contents of its buffers.
func TestPlansRunRepeatedly(t *testing.T) {
	inWorld(t, 3, func(world *Comm) error {
		mine, sum, all := make([]byte, 1), make([]byte, 1), make([]byte, 3)
		reduction, gathering := Allreduce(of(mine), of(sum)), Allgather(of(mine), of(all))
		for round := range 4 {
			mine[0] = byte(10*world.Rank() + round)
			if err := Run(world, Call{Name: "Allreduce", Type: "uint8"}, reduction, bytesAdded); err != nil {
				return err
			}
			r, err := Begin(world, Call{Name: "Iallgather", Type: "uint8"}, gathering, Op{})
			if err != nil {
				return err
			}
			if _, err := r.Wait(); err != nil {
				return err
			}
			want := []byte{byte(round), byte(10 + round), byte(20 + round)}
			if string(all) != string(want) || sum[0] != want[0]+want[1]+want[2] {
				return fmt.Errorf("round %d: got %v and sum %d, want %v", round, all, sum, want)
			}
		}
		return nil
	})
}

// TestInvalidPlansAreRefused checks the class of each refused argument of a collective, and that the
// error names the argument at all ranks.
func TestInvalidPlansAreRefused(t *testing.T) {
	inWorld(t, 2, func(world *Comm) error {
		one, two, three, each := []byte{1}, []byte{1, 2}, []byte{1, 2, 3}, []int{1, 1}
		pairs := Op{Length: 2, Unit: 1, Combine: bytesAdded.Combine}
		cases := []struct {
			name  string
			plan  *Plan
			op    Op
			class Class
			says  string
		}{
			{"Bcast", Bcast(of(one), 2), Op{}, ErrRoot, "root 2, ranks are 0..1"},
			{"Gather", Gather(of(one), of(three), -1), Op{}, ErrRoot, "root -1"},
			{"Scatterv", Scatterv(of(two), each, nil, of(one), 2), Op{}, ErrRoot, "root 2"},
			{"Allgather", Allgather(of(one), of(three)), Op{}, ErrBuffer, "recv has 3 elements for 2 ranks with 1 each"},
			{"Allgatherv", Allgatherv(of(one), of(three), []int{1}, nil), Op{}, ErrCount, "1 counts and 0 displacements of recv for 2 ranks"},
			{"Allgatherv beyond the buffer", Allgatherv(of(one), of(two), each, []int{0, 2}), Op{}, ErrCount, "the block of rank 1 has 1 at offset 2"},
			{"Alltoall", Alltoall(of(three), of(three)), Op{}, ErrBuffer, "send has 3 elements and recv 3 for 2 ranks"},
			{"Alltoall of one buffer", Alltoall(of(two), of(two)), Op{}, ErrBuffer, "send and recv are the same"},
			{"Alltoallv", Alltoallv(of(two), each, nil, of(three), []int{1}, nil), Op{}, ErrCount, "of recv for 2 ranks"},
			{"Alltoallw", Alltoallw(nil, nil, nil), Op{}, ErrCount, "send has 0 items and recv 0"},
			{"Reduce", Reduce(of(one), of(one), 2), bytesAdded, ErrRoot, "root 2"},
			{"Allreduce", Allreduce(of(one), of(two)), bytesAdded, ErrBuffer, "send has 1 elements and recv 2"},
			{"Allreduce without an operation", Allreduce(of(one), of(one)), Op{Length: 1, Unit: 1, Null: true}, ErrOp, "op is nil"},
			{"Scan of a part of an item", Scan(of(three), of(three)), pairs, ErrCount, "3 elements are not a multiple"},
			{"Exscan with empty items", Exscan(of(one), of(one)), Op{Unit: 1}, ErrOp, "item length is 0 elements"},
			{"ReduceScatter", ReduceScatter(of(three), of(one), each), bytesAdded, ErrCount, "the counts add up to 2"},
			{"NeighborAlltoall", NeighborAlltoall(of(one), of(one)), Op{}, ErrTopology, "has no topology"},
		}
		for _, c := range cases {
			err := Run(world, Call{Name: c.name}, c.plan, c.op)
			if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
				return unexpected(err, "%s: want class %d and %q", c.name, c.class, c.says)
			}
		}
		return ring(world, 0, 1)
	})
}
