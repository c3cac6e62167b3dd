package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// DeliverAll sends mail[i] to each rank i, and returns the numbers that each rank has sent to this
// rank. The count of numbers of each rank is a multiple of width. All ranks of c call DeliverAll.
func DeliverAll(c *Comm, mail [][]int64, width int) ([][]int64, error) {
	c.startMaking()
	defer c.making.Unlock()
	context := c.Context(ManagementSlot)
	came := make([][]int64, c.size)
	came[c.rank] = mail[c.rank]
	for k := 1; k < c.size; k++ {
		dest, source := (c.rank+k)%c.size, (c.rank-k+c.size)%c.size
		r, err := c.engine.Isend(context, c.WorldRank(dest), managementTag, bytesOf(mail[dest]), engineapi.Standard)
		if err != nil {
			return nil, c.wrap(err)
		}
		b, _, err := c.engine.RecvWhole(context, c.WorldRank(source), managementTag)
		if err != nil {
			return nil, c.wrap(err)
		}
		if _, err := c.engine.Wait(r); err != nil {
			return nil, c.wrap(err)
		}
		if len(b)%(8*width) != 0 {
			return nil, c.wrap(errDifferentOrder)
		}
		came[source] = make([]int64, len(b)/8)
		copy(bytesOf(came[source]), b)
	}
	return came, nil
}
