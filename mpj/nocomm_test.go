package mpj

import (
	"context"
	"errors"
	"strings"
	"testing"
)

var (
	oneInt, otherInt = make([]int, 1), make([]int, 1)
	oneTyped         = TypeOf[int]().At(oneInt, 0, 1)
	intKey           = KeyvalCreate[int](nil, nil)
	intSum           = OpOf(Sum[int])
)

func lesser(a, b int) int { return min(a, b) }

// everyCall contains one call on a communicator for each function that can fail.
var everyCall = []struct {
	name string
	call func(c *Comm) error
}{
	{"Barrier", func(c *Comm) error { return Barrier(c) }},
	{"Ibarrier", func(c *Comm) error { _, err := Ibarrier(c); return err }},
	{"Bcast", func(c *Comm) error { return Bcast(c, oneInt, 0) }},
	{"Ibcast", func(c *Comm) error { _, err := Ibcast(c, oneInt, 0); return err }},
	{"Gather", func(c *Comm) error { return Gather(c, oneInt, oneInt, 0) }},
	{"Igather", func(c *Comm) error { _, err := Igather(c, oneInt, oneInt, 0); return err }},
	{"Gatherv", func(c *Comm) error { return Gatherv(c, oneInt, oneInt, oneInt, nil, 0) }},
	{"Igatherv", func(c *Comm) error { _, err := Igatherv(c, oneInt, oneInt, oneInt, nil, 0); return err }},
	{"Scatter", func(c *Comm) error { return Scatter(c, oneInt, oneInt, 0) }},
	{"Iscatter", func(c *Comm) error { _, err := Iscatter(c, oneInt, oneInt, 0); return err }},
	{"Scatterv", func(c *Comm) error { return Scatterv(c, oneInt, oneInt, nil, oneInt, 0) }},
	{"Iscatterv", func(c *Comm) error { _, err := Iscatterv(c, oneInt, oneInt, nil, oneInt, 0); return err }},
	{"Allgather", func(c *Comm) error { return Allgather(c, oneInt, oneInt) }},
	{"Iallgather", func(c *Comm) error { _, err := Iallgather(c, oneInt, oneInt); return err }},
	{"Allgatherv", func(c *Comm) error { return Allgatherv(c, oneInt, oneInt, oneInt, nil) }},
	{"Iallgatherv", func(c *Comm) error { _, err := Iallgatherv(c, oneInt, oneInt, oneInt, nil); return err }},
	{"Alltoall", func(c *Comm) error { return Alltoall(c, oneInt, otherInt) }},
	{"Ialltoall", func(c *Comm) error { _, err := Ialltoall(c, oneInt, otherInt); return err }},
	{"Alltoallv", func(c *Comm) error { return Alltoallv(c, oneInt, oneInt, nil, otherInt, oneInt, nil) }},
	{"Ialltoallv", func(c *Comm) error { _, err := Ialltoallv(c, oneInt, oneInt, nil, otherInt, oneInt, nil); return err }},
	{"Alltoallw", func(c *Comm) error { return Alltoallw(c, nil, nil) }},
	{"Ialltoallw", func(c *Comm) error { _, err := Ialltoallw(c, nil, nil); return err }},
	{"Reduce", func(c *Comm) error { return Reduce(c, oneInt, oneInt, Sum, 0) }},
	{"Ireduce", func(c *Comm) error { _, err := Ireduce(c, oneInt, oneInt, Sum, 0); return err }},
	{"Allreduce", func(c *Comm) error { return Allreduce(c, oneInt, oneInt, Sum) }},
	{"Iallreduce", func(c *Comm) error { _, err := Iallreduce(c, oneInt, oneInt, Sum); return err }},
	{"ReduceScatter", func(c *Comm) error { return ReduceScatter(c, oneInt, oneInt, oneInt, Sum) }},
	{"IreduceScatter", func(c *Comm) error { _, err := IreduceScatter(c, oneInt, oneInt, oneInt, Sum); return err }},
	{"ReduceScatterBlock", func(c *Comm) error { return ReduceScatterBlock(c, oneInt, oneInt, Sum) }},
	{"IreduceScatterBlock", func(c *Comm) error { _, err := IreduceScatterBlock(c, oneInt, oneInt, Sum); return err }},
	{"Scan", func(c *Comm) error { return Scan(c, oneInt, oneInt, Sum) }},
	{"Iscan", func(c *Comm) error { _, err := Iscan(c, oneInt, oneInt, Sum); return err }},
	{"Exscan", func(c *Comm) error { return Exscan(c, oneInt, oneInt, Sum) }},
	{"Iexscan", func(c *Comm) error { _, err := Iexscan(c, oneInt, oneInt, Sum); return err }},
	{"ReduceTyped", func(c *Comm) error { return ReduceTyped(c, oneTyped, oneTyped, intSum, 0) }},
	{"IreduceTyped", func(c *Comm) error { _, err := IreduceTyped(c, oneTyped, oneTyped, intSum, 0); return err }},
	{"AllreduceTyped", func(c *Comm) error { return AllreduceTyped(c, oneTyped, oneTyped, intSum) }},
	{"IallreduceTyped", func(c *Comm) error { _, err := IallreduceTyped(c, oneTyped, oneTyped, intSum); return err }},
	{"ReduceScatterTyped", func(c *Comm) error { return ReduceScatterTyped(c, oneTyped, oneTyped, oneInt, intSum) }},
	{"IreduceScatterTyped", func(c *Comm) error { _, err := IreduceScatterTyped(c, oneTyped, oneTyped, oneInt, intSum); return err }},
	{"ReduceScatterBlockTyped", func(c *Comm) error { return ReduceScatterBlockTyped(c, oneTyped, oneTyped, intSum) }},
	{"IreduceScatterBlockTyped", func(c *Comm) error {
		_, err := IreduceScatterBlockTyped(c, oneTyped, oneTyped, intSum)
		return err
	}},
	{"ScanTyped", func(c *Comm) error { return ScanTyped(c, oneTyped, oneTyped, intSum) }},
	{"IscanTyped", func(c *Comm) error { _, err := IscanTyped(c, oneTyped, oneTyped, intSum); return err }},
	{"ExscanTyped", func(c *Comm) error { return ExscanTyped(c, oneTyped, oneTyped, intSum) }},
	{"IexscanTyped", func(c *Comm) error { _, err := IexscanTyped(c, oneTyped, oneTyped, intSum); return err }},
	{"NeighborAllgather", func(c *Comm) error { return NeighborAllgather(c, oneInt, oneInt) }},
	{"IneighborAllgather", func(c *Comm) error { _, err := IneighborAllgather(c, oneInt, oneInt); return err }},
	{"NeighborAllgatherv", func(c *Comm) error { return NeighborAllgatherv(c, oneInt, oneInt, oneInt, nil) }},
	{"IneighborAllgatherv", func(c *Comm) error { _, err := IneighborAllgatherv(c, oneInt, oneInt, oneInt, nil); return err }},
	{"NeighborAlltoall", func(c *Comm) error { return NeighborAlltoall(c, oneInt, otherInt) }},
	{"IneighborAlltoall", func(c *Comm) error { _, err := IneighborAlltoall(c, oneInt, otherInt); return err }},
	{"NeighborAlltoallv", func(c *Comm) error { return NeighborAlltoallv(c, oneInt, oneInt, nil, otherInt, oneInt, nil) }},
	{"IneighborAlltoallv", func(c *Comm) error {
		_, err := IneighborAlltoallv(c, oneInt, oneInt, nil, otherInt, oneInt, nil)
		return err
	}},
	{"Send", func(c *Comm) error { return Send(c, oneInt, 0, 0) }},
	{"SendTyped", func(c *Comm) error { return SendTyped(c, oneTyped, 0, 0) }},
	{"SendInit", func(c *Comm) error { _, err := SendInit(c, oneInt, 0, 0); return err }},
	{"Isend", func(c *Comm) error { _, err := Isend(c, oneInt, 0, 0); return err }},
	{"IsendTyped", func(c *Comm) error { _, err := IsendTyped(c, oneTyped, 0, 0); return err }},
	{"Ssend", func(c *Comm) error { return Ssend(c, oneInt, 0, 0) }},
	{"SsendTyped", func(c *Comm) error { return SsendTyped(c, oneTyped, 0, 0) }},
	{"SsendInit", func(c *Comm) error { _, err := SsendInit(c, oneInt, 0, 0); return err }},
	{"Issend", func(c *Comm) error { _, err := Issend(c, oneInt, 0, 0); return err }},
	{"IssendTyped", func(c *Comm) error { _, err := IssendTyped(c, oneTyped, 0, 0); return err }},
	{"Bsend", func(c *Comm) error { return Bsend(c, oneInt, 0, 0) }},
	{"BsendTyped", func(c *Comm) error { return BsendTyped(c, oneTyped, 0, 0) }},
	{"BsendInit", func(c *Comm) error { _, err := BsendInit(c, oneInt, 0, 0); return err }},
	{"Ibsend", func(c *Comm) error { _, err := Ibsend(c, oneInt, 0, 0); return err }},
	{"IbsendTyped", func(c *Comm) error { _, err := IbsendTyped(c, oneTyped, 0, 0); return err }},
	{"Rsend", func(c *Comm) error { return Rsend(c, oneInt, 0, 0) }},
	{"RsendTyped", func(c *Comm) error { return RsendTyped(c, oneTyped, 0, 0) }},
	{"RsendInit", func(c *Comm) error { _, err := RsendInit(c, oneInt, 0, 0); return err }},
	{"Irsend", func(c *Comm) error { _, err := Irsend(c, oneInt, 0, 0); return err }},
	{"IrsendTyped", func(c *Comm) error { _, err := IrsendTyped(c, oneTyped, 0, 0); return err }},
	{"BcastTyped", func(c *Comm) error { return BcastTyped(c, oneTyped, 0) }},
	{"SendInitTyped", func(c *Comm) error { _, err := SendInitTyped(c, oneTyped, 0, 0); return err }},
	{"RecvInit", func(c *Comm) error { _, err := RecvInit(c, oneInt, 0, 0); return err }},
	{"RecvInitTyped", func(c *Comm) error { _, err := RecvInitTyped(c, oneTyped, 0, 0); return err }},
	{"Recv", func(c *Comm) error { _, err := Recv(c, oneInt, 0, 0); return err }},
	{"RecvTyped", func(c *Comm) error { _, err := RecvTyped(c, oneTyped, 0, 0); return err }},
	{"Irecv", func(c *Comm) error { _, err := Irecv(c, oneInt, 0, 0); return err }},
	{"IrecvTyped", func(c *Comm) error { _, err := IrecvTyped(c, oneTyped, 0, 0); return err }},
	{"Sendrecv", func(c *Comm) error { _, err := Sendrecv(c, oneInt, 0, 0, otherInt, 0, 0); return err }},
	{"SendrecvTyped", func(c *Comm) error { _, err := SendrecvTyped(c, oneTyped, 0, 0, oneTyped, 0, 0); return err }},
	{"SendrecvReplace", func(c *Comm) error { _, err := SendrecvReplace(c, oneInt, 0, 0, 0, 0); return err }},
	{"SendrecvReplaceTyped", func(c *Comm) error { _, err := SendrecvReplaceTyped(c, oneTyped, 0, 0, 0, 0); return err }},
	{"Probe", func(c *Comm) error { _, err := Probe(c, 0, 0); return err }},
	{"Iprobe", func(c *Comm) error { _, _, err := Iprobe(c, 0, 0); return err }},
	{"Mprobe", func(c *Comm) error { _, _, err := Mprobe(c, 0, 0); return err }},
	{"Improbe", func(c *Comm) error { _, _, _, err := Improbe(c, 0, 0); return err }},
	{"SendValue", func(c *Comm) error { return SendValue(c, 1, 0, 0) }},
	{"RecvValue", func(c *Comm) error { _, _, err := RecvValue[int](c, 0, 0); return err }},
	{"BcastValue", func(c *Comm) error { _, err := BcastValue(c, 1, 0); return err }},
	{"ReduceValue", func(c *Comm) error { _, err := ReduceValue(c, 1, lesser, 0); return err }},
	{"AllreduceValue", func(c *Comm) error { _, err := AllreduceValue(c, 1, lesser); return err }},
	{"ScanValue", func(c *Comm) error { _, err := ScanValue(c, 1, lesser); return err }},
	{"ExscanValue", func(c *Comm) error { _, err := ExscanValue(c, 1, lesser); return err }},
	{"RecvContext", func(c *Comm) error { _, err := RecvContext(context.Background(), c, oneInt, 0, 0); return err }},
	{"ProbeContext", func(c *Comm) error { _, err := ProbeContext(context.Background(), c, 0, 0); return err }},
	{"AttrPut", func(c *Comm) error { return AttrPut(c, intKey, 1) }},
	{"AttrDelete", func(c *Comm) error { return AttrDelete(c, intKey) }},
	{"Dup", func(c *Comm) error { _, err := c.Dup(); return err }},
	{"Idup", func(c *Comm) error { _, _, err := c.Idup(); return err }},
	{"DupWithInfo", func(c *Comm) error { _, err := c.DupWithInfo(nil); return err }},
	{"IdupWithInfo", func(c *Comm) error { _, _, err := c.IdupWithInfo(nil); return err }},
	{"SetInfo", func(c *Comm) error { return c.SetInfo(InfoCreate()) }},
	{"Info", func(c *Comm) error { _, err := c.Info(); return err }},
	{"CreateGroup", func(c *Comm) error { _, err := c.CreateGroup(GroupEmpty, 0); return err }},
	{"Split", func(c *Comm) error { _, err := c.Split(0, 0); return err }},
	{"SplitType", func(c *Comm) error { _, err := c.SplitType(SplitMachine, 0); return err }},
	{"Create", func(c *Comm) error { _, err := c.Create(GroupEmpty); return err }},
	{"Free", func(c *Comm) error { return c.Free() }},
	{"IntercommCreate", func(c *Comm) error { _, err := c.IntercommCreate(0, c, 0, 0); return err }},
	{"Merge", func(c *Comm) error { _, err := c.Merge(true); return err }},
	{"CartCreate", func(c *Comm) error { _, err := c.CartCreate([]int{1}, []bool{false}, false); return err }},
	{"CartCoords", func(c *Comm) error { _, err := c.CartCoords(0); return err }},
	{"CartGet", func(c *Comm) error { _, _, _, err := c.CartGet(); return err }},
	{"CartMap", func(c *Comm) error { _, err := c.CartMap([]int{1}, []bool{false}); return err }},
	{"CartRank", func(c *Comm) error { _, err := c.CartRank([]int{0}); return err }},
	{"CartShift", func(c *Comm) error { _, _, err := c.CartShift(0, 1); return err }},
	{"CartSub", func(c *Comm) error { _, err := c.CartSub([]bool{true}); return err }},
	{"CartdimGet", func(c *Comm) error { _, err := c.CartdimGet(); return err }},
	{"GraphCreate", func(c *Comm) error { _, err := c.GraphCreate([]int{0}, nil, false); return err }},
	{"GraphGet", func(c *Comm) error { _, _, err := c.GraphGet(); return err }},
	{"GraphMap", func(c *Comm) error { _, err := c.GraphMap([]int{0}, nil); return err }},
	{"GraphNeighbors", func(c *Comm) error { _, err := c.GraphNeighbors(0); return err }},
	{"GraphNeighborsCount", func(c *Comm) error { _, err := c.GraphNeighborsCount(0); return err }},
	{"GraphdimsGet", func(c *Comm) error { _, _, err := c.GraphdimsGet(); return err }},
	{"DistGraphCreate", func(c *Comm) error { _, err := c.DistGraphCreate(nil, nil, nil, nil, false); return err }},
	{"DistGraphCreateAdjacent", func(c *Comm) error { _, err := c.DistGraphCreateAdjacent(nil, nil, nil, nil, false); return err }},
	{"DistGraphNeighbors", func(c *Comm) error { _, _, _, _, err := c.DistGraphNeighbors(); return err }},
	{"DistGraphNeighborsCount", func(c *Comm) error { _, _, _, err := c.DistGraphNeighborsCount(); return err }},
}

// TestNoCommunicatorIsNamed checks that every call on a nil communicator from Split, or on a freed
// communicator, fails with an error that names the problem.
func TestNoCommunicatorIsNamed(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(w *World) error {
		freed, err := w.Dup()
		if err := first(err, freed.Free()); err != nil {
			return err
		}
		for _, c := range []*Comm{nil, freed} {
			for _, call := range everyCall {
				err := call.call(c)
				if !errors.Is(err, ErrComm) || !strings.HasPrefix(err.Error(), "mpj."+call.name) {
					t.Errorf("%s (nil: %v): got %v", call.name, c == nil, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
