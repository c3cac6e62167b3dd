package collective

// A binomialTree is the binomial tree of a root, as seen from one rank. With ranks counted from
// root, the parent of a rank is the rank without its lowest set bit; its children add one lower bit
// each.
type binomialTree struct {
	size, root int
	v          int // this rank, counted from root
	span       int // number of ranks in its subtree, if size were a power of two
}

func treeOf(t *Team, root int) binomialTree {
	v, span := t.down(root), 1
	for span < t.Size && v&span == 0 {
		span *= 2
	}
	return binomialTree{size: t.Size, root: root, v: v, span: span}
}

// parent returns the rank of the parent, if there is one.
func (b binomialTree) parent() (rank int, ok bool) { return b.rank(b.v & (b.v - 1)), b.v != 0 }

// child returns the rank of the child that adds a bit below span, if it exists.
func (b binomialTree) child(bit int) (rank int, ok bool) { return b.rank(b.v + bit), b.v+bit < b.size }

// rank returns the rank of v, which is counted from root.
func (b binomialTree) rank(v int) int { return (v + b.root) % b.size }
