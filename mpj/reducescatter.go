package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// ReduceScatterBlock combines the send buffers of all ranks, whose length is Size() times the length
// of recv, and stores the i-th part of the result in recv of rank i. If send is nil, the elements of
// recv are combined, and the first part of recv gets the result.
func ReduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) error {
	return combine(c, reductionCall(c, "ReduceScatterBlock", op), core.ReduceScatterBlock(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// IreduceScatterBlock is the nonblocking form of ReduceScatterBlock.
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return beginCombine(c, reductionCall(c, "IreduceScatterBlock", op), core.ReduceScatterBlock(argument(send), argument(recv)), reductionOf(op, itemLength(op)))
}

// ReduceScatter is ReduceScatterBlock with parts of different lengths: the part of rank i has
// counts[i] elements, and the parts are contiguous in send. All ranks pass the same counts. If send
// is nil, recv has the length of all parts together.
func ReduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) error {
	return combine(c, reductionCall(c, "ReduceScatter", op), core.ReduceScatter(argument(send), argument(recv), counts), reductionOf(op, itemLength(op)))
}

// IreduceScatter is the nonblocking form of ReduceScatter.
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) (*Request, error) {
	return beginCombine(c, reductionCall(c, "IreduceScatter", op), core.ReduceScatter(argument(send), argument(recv), counts), reductionOf(op, itemLength(op)))
}
