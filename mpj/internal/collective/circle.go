package collective

import "slices"

// A circle is a team of the members that exchange messages at one level. Its head represents all of
// them at the next level.
type circle struct {
	*Team
	members []int // ranks of the members in the whole team
	head    int   // rank in the circle
	level   int   // group that each member represents
	end     int   // if groups are runs of ranks: the rank after the last that the members represent
}

// circles returns the circles that this rank is in, from that of its machine up to that of all
// clusters. root itself represents its groups.
func (t *Team) circles(root int) []circle {
	l := t.Levels
	machines := speakers(l.machine, root, func(i int) bool { return l.cluster[i] == l.cluster[t.Rank] })
	clusters := speakers(l.cluster, root, func(int) bool { return true })
	var here []int
	end := 0 // of the cluster
	for i := range t.Size {
		if l.machine[i] == l.machine[t.Rank] {
			here = append(here, i)
		}
		if l.cluster[i] == l.cluster[t.Rank] {
			end = i + 1
		}
	}
	levels := []circle{
		t.circle(alone, here, machines, here[len(here)-1]+1),
		t.circle(machine, machines, clusters, end),
		t.circle(cluster, clusters, []int{root}, t.Size),
	}
	for i, c := range levels {
		if c.members[c.head] != t.Rank {
			return levels[:i+1]
		}
	}
	return levels
}

// circle returns the circle of members, whose head is among heads.
func (t *Team) circle(level int, members, heads []int, end int) circle {
	head := slices.IndexFunc(members, func(m int) bool { return slices.Contains(heads, m) })
	return circle{Team: t.part(members), members: members, head: head, level: level, end: end}
}

// The groups that a member of a circle can represent: itself, its machine, its cluster, or all
// ranks.
const (
	alone = iota
	machine
	cluster
	everywhere
)

// spokenFor returns the ranks, in order, that rank represents at a level.
func (t *Team) spokenFor(level, rank int) []int {
	if level == alone {
		return []int{rank}
	}
	l := t.Levels
	var ranks []int
	for i := range t.Size {
		if level == everywhere || level == machine && l.machine[i] == l.machine[rank] || level == cluster && l.cluster[i] == l.cluster[rank] {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// except returns all ranks except some, which are in order.
func (t *Team) except(some []int) []int {
	var ranks []int
	for i := range t.Size {
		if len(some) > 0 && some[0] == i {
			some = some[1:]
		} else {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// behind returns the rank after the last that member i represents. The head must be the first
// member, and groups must be runs of ranks.
func (c *circle) behind(i int) int {
	if i+1 < len(c.members) {
		return c.members[i+1]
	}
	return c.end
}

func (t *Team) levelledBcast(b []byte, root int) error {
	circles := t.circles(root)
	for i := len(circles) - 1; i >= 0; i-- {
		if err := circles[i].bcast(b, circles[i].head); err != nil {
			return err
		}
	}
	return nil
}

func (t *Team) levelledBarrier() error {
	for _, c := range t.circles(0) {
		if err := c.arrive(); err != nil {
			return err
		}
	}
	return t.levelledBcast(nil, 0)
}

// levelledAllgather collects all blocks at rank 0, level by level, and sends them back. Groups must
// be runs of ranks.
func (t *Team) levelledAllgather(buf []byte, blocks Blocks) error {
	end := t.Rank + 1 // end of the run of blocks at this rank, which begins with its own
	for _, c := range t.circles(0) {
		if c.head != c.Rank {
			if err := c.send(blocks.span(buf, t.Rank, end), c.head); err != nil {
				return err
			}
			break
		}
		for i := 1; i < c.Size; i++ {
			end = c.behind(i)
			if err := c.recv(blocks.span(buf, c.members[i], end), i); err != nil {
				return err
			}
		}
	}
	return t.levelledBcast(buf, 0)
}
