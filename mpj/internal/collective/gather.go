package collective

// Gather gathers mine of all members into the blocks of root's buf. At root, mine may be nil;
// root's block is then already in place.
func (t *Team) Gather(mine, buf []byte, blocks Blocks, root int) error {
	if err := t.begin(rooted(Gather, root)); err != nil {
		return err
	}
	switch t.choose(Gather, blocks.Each) {
	case Levelled:
		return t.end(t.levelledGather(mine, buf, blocks, root))
	case Binomial:
		return t.end(t.binomialGather(mine, buf, blocks, root))
	}
	return t.end(t.linearGather(mine, buf, blocks, root))
}

// Gatherv is Gather with blocks that only root knows.
func (t *Team) Gatherv(mine, buf []byte, blocks Blocks, root int) error {
	if err := t.begin(rooted(Gather, root)); err != nil {
		return err
	}
	if t.choose(Gather, 0) == Levelled {
		return t.end(t.levelledGather(mine, buf, blocks, root))
	}
	return t.end(t.linearGather(mine, buf, blocks, root))
}

func (t *Team) linearGather(mine, buf []byte, blocks Blocks, root int) error {
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

// binomialGather collects the blocks of a subtree before it passes them on. Ranks are counted from
// root.
func (t *Team) binomialGather(mine, buf []byte, blocks Blocks, root int) error {
	v := t.down(root)
	whole := t.subtree(v)
	s := borrow(min(whole, t.Size-v) * blocks.Each)
	defer s.free()
	if mine == nil && v == 0 {
		mine = blocks.of(buf, root)
	}
	copy(s.b, mine)
	for bit := 1; bit < whole && v+bit < t.Size; bit *= 2 {
		theirs := blocks.span(s.b, bit, min(2*bit, t.Size-v))
		if err := t.recv(theirs, (v+bit+root)%t.Size); err != nil {
			return err
		}
	}
	if parent, ok := t.parent(root); ok {
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

// Scatter sends the blocks of root's buf to mine of each member. At root, mine may be nil; root's
// block then stays in place.
func (t *Team) Scatter(buf []byte, blocks Blocks, mine []byte, root int) error {
	if err := t.begin(rooted(Scatter, root)); err != nil {
		return err
	}
	switch t.choose(Scatter, blocks.Each) {
	case Levelled:
		return t.end(t.levelledScatter(buf, blocks, mine, root))
	case Binomial:
		return t.end(t.binomialScatter(buf, blocks, mine, root))
	}
	return t.end(t.linearScatter(buf, blocks, mine, root))
}

// Scatterv is Scatter with blocks that only root knows.
func (t *Team) Scatterv(buf []byte, blocks Blocks, mine []byte, root int) error {
	if err := t.begin(rooted(Scatter, root)); err != nil {
		return err
	}
	if t.choose(Scatter, 0) == Levelled {
		return t.end(t.levelledScatter(buf, blocks, mine, root))
	}
	return t.end(t.linearScatter(buf, blocks, mine, root))
}

func (t *Team) linearScatter(buf []byte, blocks Blocks, mine []byte, root int) error {
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

// binomialScatter passes on the blocks of each subtree. Ranks are counted from root.
func (t *Team) binomialScatter(buf []byte, blocks Blocks, mine []byte, root int) error {
	v := t.down(root)
	bit := t.subtree(v)
	s := borrow(min(bit, t.Size-v) * blocks.Each)
	defer s.free()
	if parent, ok := t.parent(root); ok {
		if err := t.recv(s.b, parent); err != nil {
			return err
		}
	} else {
		n := copy(s.b, buf[root*blocks.Each:])
		copy(s.b[n:], buf)
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit >= t.Size {
			continue
		}
		if err := t.send(blocks.span(s.b, bit, min(2*bit, t.Size-v)), (v+bit+root)%t.Size); err != nil {
			return err
		}
	}
	if mine != nil {
		copy(mine, s.b[:blocks.Each])
	}
	return nil
}
