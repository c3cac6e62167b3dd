package collective

import "slices"

// A Levels records the machine and the cluster of nearby machines of each member of a team.
type Levels struct {
	machine, cluster []int // machine and cluster of each member
	contiguous       bool  // the members of every group are a run of ranks
}

// NewLevels returns the levels of size members. It returns nil if levels would make no difference,
// because all members are on one machine, or each member is on its own machine in one cluster.
func NewLevels(size int, at func(rank int) (machine, cluster int)) *Levels {
	l := &Levels{machine: make([]int, size), cluster: make([]int, size)}
	for i := range size {
		l.machine[i], l.cluster[i] = at(i)
		if first := slices.Index(l.machine, l.machine[i]); first < i {
			l.cluster[i] = l.cluster[first] // all members on a machine are in one cluster, whatever at returns
		}
	}
	machines, runs := groups(l.machine)
	clusters, clusterRuns := groups(l.cluster)
	if machines == 1 || machines == size && clusters == 1 {
		return nil
	}
	l.contiguous = machines == runs && clusters == clusterRuns
	return l
}

// groups returns the number of different values, and the number of runs of equal values.
func groups(values []int) (different, runs int) {
	seen := make(map[int]bool)
	for i, v := range values {
		seen[v] = true
		if i == 0 || v != values[i-1] {
			runs++
		}
	}
	return len(seen), runs
}

// The groups that a rank can represent: itself, its machine, its cluster, or all ranks.
const (
	alone = iota
	machine
	cluster
	everywhere
)

// represented returns the ranks, in order, that rank represents at a level.
func (l *Levels) represented(level, rank int) []int {
	if level == alone {
		return []int{rank}
	}
	var ranks []int
	for i := range l.machine {
		if level == everywhere || level == machine && l.machine[i] == l.machine[rank] || level == cluster && l.cluster[i] == l.cluster[rank] {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// except returns the ranks below n without those in some, which are in order.
func except(n int, some []int) []int {
	var ranks []int
	for i := range n {
		if len(some) > 0 && some[0] == i {
			some = some[1:]
		} else {
			ranks = append(ranks, i)
		}
	}
	return ranks
}

// representatives returns, in order, one rank for each group that has a rank that among accepts: root
// for its own group, otherwise the first such rank of the group.
func representatives(group []int, root int, among func(rank int) bool) []int {
	var ranks []int
	seen := make(map[int]bool)
	for i, g := range group {
		if !seen[g] && among(i) {
			seen[g] = true
			if g == group[root] {
				i = root
			}
			ranks = append(ranks, i)
		}
	}
	return ranks
}
