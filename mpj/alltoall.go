package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// Alltoall sends the j-th of Size() equal parts of send to rank j, and stores the part received
// from rank i as the i-th part of recv. The two buffers must not overlap. If send is nil, the parts
// of recv are sent and then replaced; all ranks must then pass nil.
func Alltoall[T Element](c *Comm, send, recv []T) error {
	return run(c, callOf[T](c, "Alltoall"), core.Alltoall(argument(send), argument(recv)))
}

// Ialltoall is the nonblocking form of Alltoall.
func Ialltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	return begin(c, callOf[T](c, "Ialltoall"), core.Alltoall(argument(send), argument(recv)))
}

// Alltoallv is Alltoall with parts of different lengths: rank j receives sendCounts[j] elements of
// send[sendDispls[j]:]. The recvCounts[i] elements from rank i are stored at recv[recvDispls[i]:].
// With nil displacements the parts are contiguous. If send and sendCounts are nil, every pair of
// ranks exchanges its parts of recv in place; all ranks must then pass nil.
func Alltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return run(c, callOf[T](c, "Alltoallv"), core.Alltoallv(argument(send), sendCounts, sendDispls, argument(recv), recvCounts, recvDispls))
}

// Ialltoallv is the nonblocking form of Alltoallv.
func Ialltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Request, error) {
	return begin(c, callOf[T](c, "Ialltoallv"), core.Alltoallv(argument(send), sendCounts, sendDispls, argument(recv), recvCounts, recvDispls))
}

// Alltoallw is Alltoall for items of datatypes: send[j] is sent to rank j, and the data from rank i
// is stored in recv[i]. If send is nil, recv[j] is sent to rank j and then replaced; all ranks must
// then pass nil.
func Alltoallw(c *Comm, send, recv []Typed) error {
	return run(c, core.Call{Name: "Alltoallw"}, alltoallw(send, recv, "Alltoallw"))
}

// Ialltoallw is the nonblocking form of Alltoallw.
func Ialltoallw(c *Comm, send, recv []Typed) (*Request, error) {
	return begin(c, core.Call{Name: "Ialltoallw"}, alltoallw(send, recv, "Ialltoallw"))
}

// alltoallw returns the plan of op, which exchanges items.
func alltoallw(send, recv []Typed, op string) *core.Plan {
	out, err := buffersOf(send, op)
	in, invalid := buffersOf(recv, op)
	if err != nil {
		invalid = err
	}
	return core.Alltoallw(out, in, invalid)
}

// buffersOf returns items as arguments of package core, and the reason why op cannot use one of them,
// or nil.
func buffersOf(items []Typed, op string) (buffers []core.Buffer, invalid error) {
	if items == nil {
		return nil, nil
	}
	buffers = make([]core.Buffer, len(items))
	for i, x := range items {
		if err := x.usable(op); err != nil {
			invalid = err
			continue
		}
		buffers[i] = x.buffer
	}
	return buffers, invalid
}
