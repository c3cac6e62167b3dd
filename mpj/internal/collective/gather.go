package collective

// gather uses the binomial tree only if all members know that the blocks have the same length.
func gather(t *Team, mine, buf []byte, blocks Blocks, root int, even bool) error {
	switch a := t.choose(Gather, blocks.Each); {
	case a == Levelled:
		return levelledGather(t, mine, buf, blocks, root)
	case a == Binomial && even:
		return binomialGather(t, mine, buf, blocks, root)
	}
	return linearGather(t, mine, buf, blocks, root)
}

func linearGather(t *Team, mine, buf []byte, blocks Blocks, root int) error {
	if t.Rank != root {
		return t.send(mine, root)
	}
	for i := range t.Size {
		if i == root {
			if mine != nil {
				copy(blocks.of(buf, i), mine)
			}
			continue
		}
		if err := t.recv(blocks.of(buf, i), i); err != nil {
			return err
		}
	}
	return nil
}

// binomialGather receives the blocks of a subtree and then sends them to the parent. Ranks are
// counted from root.
func binomialGather(t *Team, mine, buf []byte, blocks Blocks, root int) error {
	tree := treeOf(t, root)
	v := tree.v
	s := borrow(min(tree.span, t.Size-v) * blocks.Each)
	defer s.free()
	if mine == nil && v == 0 {
		mine = blocks.of(buf, root)
	}
	copy(s.b, mine)
	for bit := 1; bit < tree.span; bit *= 2 {
		if child, ok := tree.child(bit); ok {
			if err := t.recv(blocks.span(s.b, bit, min(2*bit, t.Size-v)), child); err != nil {
				return err
			}
		}
	}
	if parent, ok := tree.parent(); ok {
		return t.send(s.b, parent)
	}
	turn(buf, s.b, root*blocks.Each)
	return nil
}

// turn copies b to buf, starting at offset at and wrapping around at the end of buf.
func turn(buf, b []byte, at int) {
	n := copy(buf[at:], b)
	copy(buf, b[n:])
}

// scatter, like gather, uses the binomial tree only for blocks of the same length.
func scatter(t *Team, buf []byte, blocks Blocks, mine []byte, root int, even bool) error {
	switch a := t.choose(Scatter, blocks.Each); {
	case a == Levelled:
		return levelledScatter(t, buf, blocks, mine, root)
	case a == Binomial && even:
		return binomialScatter(t, buf, blocks, mine, root)
	}
	return linearScatter(t, buf, blocks, mine, root)
}

func linearScatter(t *Team, buf []byte, blocks Blocks, mine []byte, root int) error {
	if t.Rank != root {
		return t.recv(mine, root)
	}
	for k := 1; k < t.Size; k++ {
		if err := t.send(blocks.of(buf, t.up(k)), t.up(k)); err != nil {
			return err
		}
	}
	if mine != nil {
		copy(mine, blocks.of(buf, root))
	}
	return nil
}

// binomialScatter sends each child the blocks of its subtree. Ranks are counted from root.
func binomialScatter(t *Team, buf []byte, blocks Blocks, mine []byte, root int) error {
	tree := treeOf(t, root)
	v := tree.v
	s := borrow(min(tree.span, t.Size-v) * blocks.Each)
	defer s.free()
	if parent, ok := tree.parent(); ok {
		if err := t.recv(s.b, parent); err != nil {
			return err
		}
	} else {
		n := copy(s.b, buf[root*blocks.Each:])
		copy(s.b[n:], buf)
	}
	for bit := tree.span / 2; bit > 0; bit /= 2 {
		if child, ok := tree.child(bit); ok {
			if err := t.send(blocks.span(s.b, bit, min(2*bit, t.Size-v)), child); err != nil {
				return err
			}
		}
	}
	if mine != nil {
		copy(mine, s.b[:blocks.Each])
	}
	return nil
}
