package collective

import "slices"

// A circle is a team of the members that exchange messages at one level. Its head represents all
// members at the next level.
type circle struct {
	*Team
	members []int // ranks of the members in the whole team
	head    int   // rank in the circle
	level   int   // group that each member represents
	end     int   // if groups are runs of ranks: the rank after the last one that the members represent
}

// circles returns the circles that contain this rank, from the circle of its machine to the circle
// of all clusters. The rank root represents its own groups.
func circles(t *Team, root int) []circle {
	l := t.Levels
	machines := representatives(l.machine, root, func(i int) bool { return l.cluster[i] == l.cluster[t.Rank] })
	clusters := representatives(l.cluster, root, func(int) bool { return true })
	var here []int
	end := 0 // end of the cluster
	for i := range t.Size {
		if l.machine[i] == l.machine[t.Rank] {
			here = append(here, i)
		}
		if l.cluster[i] == l.cluster[t.Rank] {
			end = i + 1
		}
	}
	levels := []circle{
		newCircle(t, alone, here, machines, here[len(here)-1]+1),
		newCircle(t, machine, machines, clusters, end),
		newCircle(t, cluster, clusters, []int{root}, t.Size),
	}
	for i, c := range levels {
		if c.members[c.head] != t.Rank {
			return levels[:i+1]
		}
	}
	return levels
}

// newCircle returns the circle of members, whose head is among heads.
func newCircle(t *Team, level int, members, heads []int, end int) circle {
	head := slices.IndexFunc(members, func(m int) bool { return slices.Contains(heads, m) })
	return circle{Team: t.part(members), members: members, head: head, level: level, end: end}
}

// behind returns the rank after the last one that member i represents. The head must be the first
// member, and groups must be runs of ranks.
func (c *circle) behind(i int) int {
	if i+1 < len(c.members) {
		return c.members[i+1]
	}
	return c.end
}

func levelledBcast(t *Team, b []byte, root int) error {
	all := circles(t, root)
	for i := len(all) - 1; i >= 0; i-- {
		if err := bcast(all[i].Team, b, all[i].head); err != nil {
			return err
		}
	}
	return nil
}

func levelledBarrier(t *Team) error {
	for _, c := range circles(t, 0) {
		if err := arrive(c.Team); err != nil {
			return err
		}
	}
	return levelledBcast(t, nil, 0)
}

// levelledAllgather collects all blocks at rank 0, level by level, and sends them back. Groups must
// be runs of ranks.
func levelledAllgather(t *Team, buf []byte, blocks Blocks) error {
	end := t.Rank + 1 // end of the run of blocks at this rank, which begins with its own
	for _, c := range circles(t, 0) {
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
	return levelledBcast(t, buf, 0)
}
