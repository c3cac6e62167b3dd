package collective

// levelledReduceScatter sends the runs (see run) of each circle to its head, up to the first circle
// that covers all ranks. There the heads exchange the values for each other's ranks and combine
// them; the results are then sent down. Two clusters exchange one message in each direction, in one
// step. Groups must be runs of ranks.
func levelledReduceScatter(t *Team, send []byte, blocks Blocks, recv []byte, op Reduction) error {
	size, most := len(send), mostNodes(t.Size)
	s := borrow((2*most + 1) * size)
	defer s.free()
	own := &run{n: t.Size, size: size, values: s.b[:(most+1)*size]}
	own.add(op, [2]int{t.Rank, t.Rank + 1}, send)
	team := *t // a copy, so that t stays on the stack in calls without levels
	x := shareOut{Team: &team, blocks: blocks, run: own, incoming: s.b[(most+1)*size:]}
	mine, err := x.lift(circles(t, 0), op)
	copy(recv, mine)
	return err
}

// A shareOut is a levelledReduceScatter in progress. It does not contain the Reduction, which
// therefore stays on the stack.
type shareOut struct {
	*Team
	blocks   Blocks
	run      *run   // run of the ranks that this rank represents
	incoming []byte // buffer for another run
}

// lift returns the results for the ranks that this rank represents in the first circle.
func (x *shareOut) lift(circles []circle, op Reduction) ([]byte, error) {
	c := &circles[0]
	switch {
	case len(x.Levels.represented(c.level+1, x.Rank)) == x.Size:
		return x.swap(c, op)
	case c.Rank != c.head:
		if err := c.send(x.run.held(), c.head); err != nil {
			return nil, err
		}
		from, to := x.blocks.bounds(c.members[c.Rank], c.behind(c.Rank))
		mine := make([]byte, to-from)
		return mine, c.recv(mine, c.head)
	}
	for i := 1; i < c.Size; i++ {
		if err := c.join(x.run, op, i, x.incoming); err != nil {
			return nil, err
		}
	}
	all, err := x.lift(circles[1:], op)
	if err != nil {
		return nil, err
	}
	first, mineTo := x.blocks.bounds(c.members[0], c.behind(0))
	for i := 1; i < c.Size; i++ {
		from, to := x.blocks.bounds(c.members[i], c.behind(i))
		if err := c.send(all[from-first:to-first], i); err != nil {
			return nil, err
		}
	}
	return all[:mineTo-first], nil
}

// swap exchanges values between the members of c, and combines the values for this rank in rank
// order.
func (x *shareOut) swap(c *circle, op Reduction) ([]byte, error) {
	from, to := x.blocks.bounds(c.members[c.Rank], c.behind(c.Rank))
	size := to - from
	parts := make([][]byte, c.Size)
	parts[c.Rank] = x.pieces(from, to)
	for k := 1; k < c.Size; k++ {
		dest, source := c.up(k), c.down(k)
		theirFrom, theirTo := x.blocks.bounds(c.members[dest], c.behind(dest))
		parts[source] = make([]byte, len(cover(nil, c.members[source], c.behind(source), x.Size))*size)
		if err := c.exchange(x.pieces(theirFrom, theirTo), dest, parts[source], source); err != nil {
			return nil, err
		}
	}
	r := run{n: x.Size, size: size, values: make([]byte, (mostNodes(x.Size)+1)*size)}
	for i, part := range parts {
		for k, node := range cover(nil, c.members[i], c.behind(i), x.Size) {
			r.add(op, node, part[k*size:(k+1)*size])
		}
	}
	return r.held(), nil
}

// pieces returns bytes from..to-1 of each value of the run.
func (x *shareOut) pieces(from, to int) []byte {
	var b []byte
	for i := range x.run.nodes {
		b = append(b, x.run.at(i)[from:to]...)
	}
	return b
}
