package collective

// levelledAlltoall exchanges blocks within each circle directly, and sends blocks for ranks outside
// the circle through its head:
//
//	rank 1 -- blocks for ranks outside the machine --> head -- blocks for ranks outside the
//	cluster --> head of the cluster <-- one message each way --> other heads
//
// Blocks for lower levels take the reverse path. Two clusters of a and b ranks exchange one message
// in each direction instead of a*b, in one step instead of several. A block crosses a distant link
// once, but is forwarded up to four times within clusters. A head stores all blocks that leave or
// enter its cluster, so the algorithm is for small blocks.
func levelledAlltoall(t *Team, send, recv []byte, each int) error {
	all := t.Levels.represented(everywhere, t.Rank)
	out := grid{[]int{t.Rank}, all, each, send}
	in := grid{all, []int{t.Rank}, each, recv}
	copy(in.at(t.Rank, 0), out.at(0, t.Rank))
	return lift(t, circles(t, 0), out, in)
}

// lift delivers the blocks of out from the ranks that this rank represents in the first circle, and
// fills in with the blocks for these ranks.
func lift(t *Team, circles []circle, out, in grid) error {
	c := &circles[0]
	mine := t.Levels.represented(c.level, t.Rank)
	for k := 1; k < c.Size; k++ {
		dest, source := c.up(k), c.down(k)
		to := newGrid(mine, t.Levels.represented(c.level, c.members[dest]), in.each)
		from := newGrid(t.Levels.represented(c.level, c.members[source]), mine, in.each)
		to.add(out)
		if err := c.exchange(to.b, dest, from.b, source); err != nil {
			return err
		}
		in.add(from)
	}
	inside := t.Levels.represented(c.level+1, t.Rank)
	switch {
	case len(inside) == t.Size:
		return nil
	case c.Rank == c.head:
		return liftAll(t, circles, inside, out, in)
	}
	outside := except(t.Size, inside)
	up, down := newGrid(mine, outside, in.each), newGrid(outside, mine, in.each)
	up.add(out)
	if err := c.send(up.b, c.head); err != nil {
		return err
	}
	err := c.recv(down.b, c.head)
	in.add(down)
	return err
}

// liftAll does the same as lift at the head of the first circle, for the blocks between the ranks
// inside and outside the circle.
func liftAll(t *Team, circles []circle, inside []int, out, in grid) error {
	c, outside := &circles[0], except(t.Size, inside)
	leaving, entering := newGrid(inside, outside, in.each), newGrid(outside, inside, in.each)
	leaving.add(out)
	for i, m := range c.members {
		if i == c.Rank {
			continue
		}
		up := newGrid(t.Levels.represented(c.level, m), outside, in.each)
		if err := c.recv(up.b, i); err != nil {
			return err
		}
		leaving.add(up)
	}
	if err := lift(t, circles[1:], leaving, entering); err != nil {
		return err
	}
	for i, m := range c.members {
		if i == c.Rank {
			continue
		}
		down := newGrid(outside, t.Levels.represented(c.level, m), in.each)
		down.add(entering)
		if err := c.send(down.b, i); err != nil {
			return err
		}
	}
	in.add(entering)
	return nil
}
