package collective

import "slices"

// levelledGather collects the blocks at the heads of circles, level by level up to root, so that
// each cluster sends one message. Only root needs to know the lengths, so blocks may have any
// length.
func levelledGather(t *Team, mine, buf []byte, blocks Blocks, root int) error {
	var b []byte
	if t.Rank != root {
		b = appendRecord(nil, t.Rank, mine)
	} else if mine != nil {
		copy(blocks.of(buf, root), mine)
	}
	for _, c := range circles(t, root) {
		if c.head != c.Rank {
			if err := c.send(b, c.head); err != nil {
				return err
			}
			break
		}
		for i, m := range c.members {
			if i == c.Rank {
				continue
			}
			room := len(t.Levels.represented(c.level, m)) * recordMost
			b = slices.Grow(b, room)
			n, err := c.recvUpTo(b[len(b):len(b)+room], i)
			if err != nil {
				return err
			}
			b = b[:len(b)+n]
		}
	}
	switch {
	case t.Rank == root:
		return unpack(t, b, buf, blocks)
	case len(mine) > passedOn:
		return t.send(mine, root)
	}
	return nil
}

// unpack stores the blocks of all other ranks in buf.
func unpack(t *Team, b, buf []byte, blocks Blocks) error {
	records, err := readRecords(b, t.Size)
	if err != nil {
		return err
	}
	for i, r := range records {
		if i == t.Rank {
			continue
		}
		if err := take(t, r, blocks.of(buf, i), i); err != nil {
			return err
		}
	}
	return nil
}

// take stores a block that source sent in b.
func take(t *Team, r record, b []byte, source int) error {
	switch {
	case r.whole == nil:
		return errRecords
	case r.far:
		return t.recv(b, source)
	case len(r.block) != len(b):
		return &MismatchError{From: t.name(source), To: t.name(t.Rank), Got: len(r.block), Want: len(b)}
	}
	copy(b, r.block)
	return nil
}

// levelledScatter is the reverse of levelledGather: root sends one message to each cluster.
func levelledScatter(t *Team, buf []byte, blocks Blocks, mine []byte, root int) error {
	circles := circles(t, root)
	var b []byte
	if t.Rank == root {
		b = pack(t, buf, blocks)
	} else {
		last := len(circles) - 1
		c := &circles[last]
		b = make([]byte, len(t.Levels.represented(c.level, t.Rank))*recordMost)
		n, err := c.recvUpTo(b, c.head)
		if err != nil {
			return err
		}
		b, circles = b[:n], circles[:last]
	}
	records, err := readRecords(b, t.Size)
	if err != nil {
		return err
	}
	for i := len(circles) - 1; i >= 0; i-- {
		if err := handOut(t, &circles[i], records); err != nil {
			return err
		}
	}
	if t.Rank != root {
		return take(t, records[t.Rank], mine, root)
	}
	if mine != nil {
		copy(mine, blocks.of(buf, root))
	}
	for i, r := range records {
		if !r.far {
			continue
		}
		if err := t.send(blocks.of(buf, i), i); err != nil {
			return err
		}
	}
	return nil
}

// pack returns the records of the blocks of all other ranks.
func pack(t *Team, buf []byte, blocks Blocks) []byte {
	var b []byte
	for i := range t.Size {
		if i != t.Rank {
			b = appendRecord(b, i, blocks.of(buf, i))
		}
	}
	return b
}

// handOut sends every other member of c the records of the ranks that the member represents.
func handOut(t *Team, c *circle, records []record) error {
	for i, m := range c.members {
		if i == c.Rank {
			continue
		}
		var b []byte
		for _, rank := range t.Levels.represented(c.level, m) {
			b = append(b, records[rank].whole...)
		}
		if err := c.send(b, i); err != nil {
			return err
		}
	}
	return nil
}
