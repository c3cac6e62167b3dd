package collective

// bcast is Bcast within another operation.
func bcast(t *Team, b []byte, root int) error {
	if t.Size == 1 {
		return nil
	}
	switch t.choose(Bcast, len(b)) {
	case Levelled:
		return levelledBcast(t, b, root)
	case ScatterAllgather:
		return scatterAllgather(t, b, root)
	case Chain:
		return chain(t, b, root)
	}
	return binomialBcast(t, b, root)
}

func binomialBcast(t *Team, b []byte, root int) error {
	tree := treeOf(t, root)
	if parent, ok := tree.parent(); ok {
		if err := t.recv(b, parent); err != nil {
			return err
		}
	}
	return passOn(t, b, tree)
}

func bcastWhole(t *Team, b []byte, root int) ([]byte, error) {
	tree := treeOf(t, root)
	if parent, ok := tree.parent(); ok {
		whole, err := t.recvWhole(parent)
		if err != nil {
			return nil, err
		}
		b = whole
	}
	return b, passOn(t, b, tree)
}

// passOn sends b to the children in the tree, starting with the child that has the largest subtree.
func passOn(t *Team, b []byte, tree binomialTree) error {
	for bit := tree.span / 2; bit > 0; bit /= 2 {
		if child, ok := tree.child(bit); ok {
			if err := t.send(b, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatterAllgather sends every rank a share of b down the binomial tree, and then passes the shares
// around the ring. A rank sends each byte about twice, not log n times (Barnett, Shuler, van de
// Geijn and others, 1994).
func scatterAllgather(t *Team, b []byte, root int) error {
	tree := treeOf(t, root)
	if err := scatterShares(t, b, tree); err != nil {
		return err
	}
	right, left := t.up(1), t.down(1)
	for k := range t.Size - 1 {
		out := shareAt(t, b, tree.v-k)
		in := shareAt(t, b, tree.v-1-k)
		if err := t.exchange(out, right, in, left); err != nil {
			return err
		}
	}
	return nil
}

// shareAt returns the share of the rank at distance v from root.
func shareAt(t *Team, b []byte, v int) []byte {
	from, to := share(len(b), t.Size, (v+t.Size)%t.Size)
	return b[from:to]
}

// scatterShares sends the shares of each subtree to its root.
func scatterShares(t *Team, b []byte, tree binomialTree) error {
	v := tree.v
	if parent, ok := tree.parent(); ok {
		if err := t.recv(sharesOf(t, b, v, v+tree.span), parent); err != nil {
			return err
		}
	}
	for bit := tree.span / 2; bit > 0; bit /= 2 {
		if child, ok := tree.child(bit); ok {
			if err := t.send(sharesOf(t, b, v+bit, v+2*bit), child); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharesOf returns the shares of ranks v to w-1, without ranks beyond the last.
func sharesOf(t *Team, b []byte, v, w int) []byte {
	from, _ := share(len(b), t.Size, v)
	to, _ := share(len(b), t.Size, min(w, t.Size))
	return b[from:to]
}

// segment is the number of bytes in one message of chain. Smaller segments fill the chain sooner;
// larger segments need fewer messages.
const segment = 128 << 10

// chain passes b from rank to rank in segments: a rank sends one segment while it receives the
// next.
func chain(t *Team, b []byte, root int) error {
	v := t.down(root)
	left, right, last := t.down(1), t.up(1), v == t.Size-1
	piece := func(i int) []byte { return b[min(i*segment, len(b)):min((i+1)*segment, len(b))] }
	pieces := len(b)/segment + 1 // the last segment is shorter or empty, so that a different length is detected
	for i := range pieces + 1 {
		var err error
		receives, sends := v > 0 && i < pieces, !last && i > 0
		switch {
		case receives && sends:
			err = t.exchange(piece(i-1), right, piece(i), left)
		case receives:
			err = t.recv(piece(i), left)
		case sends:
			err = t.send(piece(i-1), right)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
