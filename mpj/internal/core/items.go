package core

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// An exchangedItems is the part of a Plan for Alltoallw: the items that each rank gets and sends.
type exchangedItems struct {
	send, recv []Buffer
	inPlace    bool
	invalid    error
}

// Alltoallw is Alltoall for items of datatypes: send[j] is sent to rank j, and the data from rank i is
// stored in recv[i]. If send is nil, recv[j] is sent to rank j and then replaced. invalid is the
// reason why one of the items is invalid, or nil.
func Alltoallw(send, recv []Buffer, invalid error) *Plan {
	x := &exchangedItems{send: send, recv: recv, inPlace: send == nil, invalid: invalid}
	if x.inPlace {
		x.send = recv
	}
	return &Plan{kind: alltoallw, items: x}
}

// check returns an error unless there is one valid item for each rank.
func (x *exchangedItems) check(c *Comm) error {
	if len(x.send) != c.size || len(x.recv) != c.size {
		return c.Failf(ErrCount, "send has %d items and recv %d for %d ranks", len(x.send), len(x.recv), c.size)
	}
	if x.invalid != nil {
		return x.invalid
	}
	if out, in := x.send[c.rank].Size(), x.recv[c.rank].Size(); out != in {
		return c.Failf(ErrCount, "rank %d sends itself %d bytes and expects %d", c.rank, out, in)
	}
	return nil
}

// describe completes the description of the call. It describes invalid items as empty.
func (x *exchangedItems) describe(k *calls.Call) {
	k.Type, k.Place = "bytes", placeOf(x.inPlace, true)
	k.Out, k.In = partsOf(x.send), partsOf(x.recv)
}

func partsOf(items []Buffer) []calls.Part {
	parts := make([]calls.Part, len(items))
	for i, b := range items {
		parts[i].Rank = i
		if b.Type != nil {
			parts[i].Count = b.Size()
		}
	}
	return parts
}

// carryOut packs all items, exchanges the bytes, and unpacks the received items.
func (x *exchangedItems) carryOut(t *collective.Team) error {
	out, in := make([]int, len(x.send)), make([]int, len(x.recv))
	var packing []byte
	total := 0
	for i := range x.send {
		out[i], in[i] = x.send[i].Size(), x.recv[i].Size()
		packing = x.send[i].Append(packing)
		total += in[i]
	}
	b, arrived := packed(in), packing
	var err error
	if x.inPlace {
		err = t.AlltoallInPlace(packing, b.inBytes(1))
	} else {
		arrived = make([]byte, total)
		err = t.Alltoall(packing, packed(out).inBytes(1), arrived, b.inBytes(1))
	}
	if err != nil {
		return err
	}
	for i := range x.recv {
		x.recv[i].Unpack(b.of(arrived, i, 1))
	}
	return nil
}
