package core

// CreateGroup creates a communicator of the members of g, which are ranks of c, in the order of g.
// Only the members call CreateGroup, with the same group and tag. The tag distinguishes calls that
// different goroutines make at the same time. At a process that is not a member, CreateGroup does
// nothing.
func CreateGroup(c, d *Comm, g Group, tag int) (member bool, err error) {
	if err := c.CheckIntra(); err != nil {
		return false, err
	}
	if tag < 0 || tag > MaxTag {
		return false, c.Failf(ErrTag, "tag %d, tags are 0..%d", tag, MaxTag)
	}
	for i, m := range g.Members {
		if c.RankOf(m) == Undefined {
			return false, c.Failf(ErrGroup, "member %d of the group is not in the communicator", i)
		}
	}
	if g.Rank() == Undefined {
		return false, nil
	}
	key := c.lineage.with(lineage(g.digest())).next(uint64(tag))
	l := key.next(madeOfGroup(c, key))
	members := electorate{comm: c, context: c.Context(GroupSlot), tag: int32(tag), members: g.Members, rank: g.Rank()}
	id, err := c.identifyIn(GroupSlot, l, members.every)
	if err != nil {
		return false, c.wrap(err)
	}
	countOfGroup(c, key)
	makeChild(c, d, id, l, g.Members)
	return true, nil
}

// madeOfGroup returns the number of communicators that CreateGroup has created from c with the tag
// and group of key. It is the same at all members of the group.
func madeOfGroup(c *Comm, key lineage) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ofGroups[key]
}

// countOfGroup adds a communicator to those of madeOfGroup.
func countOfGroup(c *Comm, key lineage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ofGroups == nil {
		c.ofGroups = make(map[lineage]uint64)
	}
	c.ofGroups[key]++
}
