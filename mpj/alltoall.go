package mpj

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// Alltoall sends the j-th of Size() equal parts of send to rank j, and stores the part received
// from rank i as the i-th part of recv. The two buffers must not overlap. If send is nil, the parts
// of recv are sent and then replaced; all ranks must then pass nil.
func Alltoall[T Element](c *Comm, send, recv []T) error {
	if err := checkAlltoall(c, "Alltoall", send, recv); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Alltoall", alltoall(&t, send == nil, send, evenBytes[T](len(recv)/c.Size()), recv, evenBytes[T](len(recv)/c.Size())))
}

// Ialltoall is the nonblocking form of Alltoall.
func Ialltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	if err := checkAlltoall(c, "Ialltoall", send, recv); err != nil {
		return nil, err
	}
	return c.background("Ialltoall", func(t *collective.Team) error {
		return alltoall(t, send == nil, send, evenBytes[T](len(recv)/c.Size()), recv, evenBytes[T](len(recv)/c.Size()))
	})
}

func checkAlltoall[T Element](c *Comm, op string, send, recv []T) error {
	if err := c.checkIntra(op); err != nil {
		return err
	}
	var err error
	if send != nil && len(send) != len(recv) || len(recv)%c.Size() != 0 {
		err = c.failf(ErrBuffer, op, "send has %d elements and recv %d for %d ranks", len(send), len(recv), c.Size())
	} else if len(send) > 0 && &send[0] == &recv[0] {
		err = c.failf(ErrBuffer, op, "send and recv are the same: pass nil as send at all ranks")
	}
	if c.world.checks {
		err = c.agree(op, placed(elementCall[T](calls.None, len(recv)/c.Size()), send, len(recv)), err)
	}
	return err
}

func alltoall[T Element](t *collective.Team, inPlace bool, send []T, out collective.Blocks, recv []T, in collective.Blocks) error {
	if inPlace {
		return t.AlltoallInPlace(bytesOf(recv), in)
	}
	return t.Alltoall(bytesOf(send), out, bytesOf(recv), in)
}

// Alltoallv is Alltoall with parts of different lengths: rank j receives sendCounts[j] elements of
// send[sendDispls[j]:]. The recvCounts[i] elements from rank i are stored at recv[recvDispls[i]:].
// With nil displacements the parts are contiguous. If send and sendCounts are nil, every pair of
// ranks exchanges its parts of recv in place; all ranks must then pass nil.
func Alltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	out, in, err := checkAlltoallv(c, "Alltoallv", send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	if err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Alltoallv", alltoall(&t, send == nil && sendCounts == nil, send, inBytes[T](out), recv, inBytes[T](in)))
}

// Ialltoallv is the nonblocking form of Alltoallv.
func Ialltoallv[T Element](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Request, error) {
	out, in, err := checkAlltoallv(c, "Ialltoallv", send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	if err != nil {
		return nil, err
	}
	return c.background("Ialltoallv", func(t *collective.Team) error {
		return alltoall(t, send == nil && sendCounts == nil, send, inBytes[T](out), recv, inBytes[T](in))
	})
}

func checkAlltoallv[T Element](c *Comm, op string, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (out, in blocks, err error) {
	if err := c.checkIntra(op); err != nil {
		return blocks{}, blocks{}, err
	}
	out, in, err = alltoallBlocks(c, op, send, sendCounts, sendDispls, recv, recvCounts, recvDispls)
	if c.world.checks {
		k := elementCall[T](calls.None, calls.None)
		k.Out, k.In, k.Place = everyPart(out.counts), everyPart(in.counts), calls.Apart
		if send == nil && sendCounts == nil {
			k.Place = calls.InPlace
		}
		err = c.agree(op, k, err)
	}
	return out, in, err
}

func alltoallBlocks[T Element](c *Comm, op string, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (out, in blocks, err error) {
	in, err = c.blocksOf(op, "recv", recvCounts, recvDispls, len(recv))
	if err != nil || send == nil && sendCounts == nil {
		return in, in, err
	}
	if out, err = c.blocksOf(op, "send", sendCounts, sendDispls, len(send)); err != nil {
		return blocks{}, blocks{}, err
	}
	if sendCounts[c.Rank()] != recvCounts[c.Rank()] {
		err = c.failf(ErrCount, op, "rank %d sends itself %d elements and expects %d", c.Rank(), sendCounts[c.Rank()], recvCounts[c.Rank()])
	}
	return out, in, err
}

// Alltoallw is Alltoall for items of datatypes: send[j] is sent to rank j, and the data from rank i
// is stored in recv[i]. If send is nil, recv[j] is sent to rank j and then replaced; all ranks must
// then pass nil.
func Alltoallw(c *Comm, send, recv []Typed) error {
	if err := checkAlltoallw(c, "Alltoallw", send, recv); err != nil {
		return err
	}
	t := c.team(collectiveSlot)
	return c.wrap("Alltoallw", alltoallw(&t, send, recv))
}

// Ialltoallw is the nonblocking form of Alltoallw.
func Ialltoallw(c *Comm, send, recv []Typed) (*Request, error) {
	if err := checkAlltoallw(c, "Ialltoallw", send, recv); err != nil {
		return nil, err
	}
	return c.background("Ialltoallw", func(t *collective.Team) error { return alltoallw(t, send, recv) })
}

func checkAlltoallw(c *Comm, op string, send, recv []Typed) error {
	if err := c.checkIntra(op); err != nil {
		return err
	}
	err := c.checkItems(op, send, recv)
	if c.world.checks {
		k := plainCall("")
		k.Type, k.Out, k.In, k.Place = "bytes", typedParts(send), typedParts(recv), calls.Apart
		if send == nil {
			k.Out, k.Place = k.In, calls.InPlace
		}
		err = c.agree(op, k, err)
	}
	return err
}

// checkItems returns an error unless send and recv have one valid item for each rank.
func (c *Comm) checkItems(op string, send, recv []Typed) error {
	if send == nil {
		send = recv
	}
	if len(send) != c.Size() || len(recv) != c.Size() {
		return c.failf(ErrCount, op, "send has %d items and recv %d for %d ranks", len(send), len(recv), c.Size())
	}
	for i := range send {
		for _, x := range []Typed{send[i], recv[i]} {
			if err := x.check(c, op); err != nil {
				return err
			}
		}
	}
	if out, in := send[c.Rank()].Size(), recv[c.Rank()].Size(); out != in {
		return c.failf(ErrCount, op, "rank %d sends itself %d bytes and expects %d", c.Rank(), out, in)
	}
	return nil
}

// alltoallw packs all items, exchanges the bytes, and unpacks the received items.
func alltoallw(t *collective.Team, send, recv []Typed) error {
	inPlace := send == nil
	if inPlace {
		send = recv
	}
	out, in := make([]int, len(send)), make([]int, len(recv))
	var packing []byte
	total := 0
	for i := range send {
		out[i], in[i] = send[i].Size(), recv[i].Size()
		packing = send[i].buffer.Append(packing)
		total += in[i]
	}
	b, arrived := packed(in), packing
	var err error
	if inPlace {
		err = t.AlltoallInPlace(packing, inBytes[byte](b))
	} else {
		arrived = make([]byte, total)
		err = t.Alltoall(packing, inBytes[byte](packed(out)), arrived, inBytes[byte](b))
	}
	if err != nil {
		return err
	}
	for i := range recv {
		recv[i].buffer.Unpack(block(arrived, b, i))
	}
	return nil
}
