package collective

import "math/bits"

// A run is one rank's partial result of a reduction whose groups are runs of ranks. It contains the
// results of the largest nodes of the tree of doc.go that cover the run. Two consecutive runs become
// one when sibling nodes are combined. Two machines therefore exchange only one message, and the
// result has the same bits as without levels.
//
//	machine A: ranks 0 1 2     machine B: 3 4
//	  run: 01 2                  run: 3 4
//	                together: 01234
type run struct {
	n      int      // number of all ranks
	size   int      // size of a vector, in bytes
	values []byte   // one value after the other
	nodes  [][2]int // from and to of each node
}

// mostNodes returns the maximum number of nodes of a run among n ranks.
func mostNodes(n int) int { return 2 * bits.Len(uint(n)) }

// cover appends to nodes the largest nodes that cover ranks from..to-1, of n.
func cover(nodes [][2]int, from, to, n int) [][2]int {
	for from < to {
		bit := 1
		for from%(2*bit) == 0 && from+bit < n && min(from+2*bit, n) <= to {
			bit *= 2
		}
		end := min(from+bit, n)
		nodes = append(nodes, [2]int{from, end})
		from = end
	}
	return nodes
}

// at returns the memory of value i.
func (r *run) at(i int) []byte { return r.values[i*r.size : (i+1)*r.size] }

// held returns the values of all nodes, one after the other.
func (r *run) held() []byte { return r.values[:len(r.nodes)*r.size] }

// add appends the value of a node, and combines nodes where possible.
func (r *run) add(op Reduction, node [2]int, value []byte) {
	copy(r.at(len(r.nodes)), value)
	r.nodes = append(r.nodes, node)
	for len(r.nodes) > 1 {
		left, right := len(r.nodes)-2, len(r.nodes)-1
		from, middle, to := r.nodes[left][0], r.nodes[left][1], r.nodes[right][1]
		if width := middle - from; from%(2*width) != 0 || to != min(from+2*width, r.n) || !powerOfTwo(width) {
			return
		}
		op.combine(r.at(left), r.at(right))
		copy(r.at(left), r.at(right))
		r.nodes = r.nodes[:right]
		r.nodes[left][1] = to
	}
}

// levelledReduce sends the run of each circle to its head, and finally the complete run to rank 0,
// which sends the result to root.
func levelledReduce(t *Team, send, recv []byte, op Reduction, root int) error {
	size, most := len(send), mostNodes(t.Size)
	s := borrow((2*most + 1) * size)
	defer s.free()
	r := run{n: t.Size, size: size, values: s.b[:(most+1)*size]}
	incoming := s.b[(most+1)*size:]
	r.add(op, [2]int{t.Rank, t.Rank + 1}, send)
	for _, c := range circles(t, 0) {
		if c.head != c.Rank {
			if err := c.send(r.held(), c.head); err != nil {
				return err
			}
			break
		}
		for i := 1; i < c.Size; i++ {
			if err := c.join(&r, op, i, incoming); err != nil {
				return err
			}
		}
	}
	switch {
	case t.Rank == 0 && root == 0:
		copy(recv, r.at(0))
	case t.Rank == 0:
		return t.send(r.at(0), root)
	case t.Rank == root:
		return t.recv(recv, 0)
	}
	return nil
}

// join receives the run of member i and adds it to r.
func (c *circle) join(r *run, op Reduction, i int, incoming []byte) error {
	nodes := cover(nil, c.members[i], c.behind(i), r.n)
	in := incoming[:len(nodes)*r.size]
	if err := c.recv(in, i); err != nil {
		return err
	}
	for k, node := range nodes {
		r.add(op, node, in[k*r.size:(k+1)*r.size])
	}
	return nil
}

func levelledAllreduce(t *Team, send, recv []byte, r Reduction) error {
	if err := levelledReduce(t, send, recv, r, 0); err != nil {
		return err
	}
	return levelledBcast(t, recv, 0)
}
