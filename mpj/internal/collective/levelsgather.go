package collective

import "slices"

// levelledGather makes heads collect the blocks of the ranks that they represent, up to root, so
// that each cluster sends one message. Only root needs to know the lengths, so blocks may have any
// length.
func (t *Team) levelledGather(mine, buf []byte, blocks Blocks, root int) error {
	var b []byte
	if t.Rank != root {
		b = appendRecord(nil, t.Rank, mine)
	} else if mine != nil {
		copy(blocks.of(buf, root), mine)
	}
	for _, c := range t.circles(root) {
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
			room := len(t.spokenFor(c.level, m)) * recordMost
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
		return t.unpack(b, buf, blocks)
	case len(mine) > passedOn:
		return t.send(mine, root)
	}
	return nil
}

// unpack stores the blocks of all other ranks in buf.
func (t *Team) unpack(b, buf []byte, blocks Blocks) error {
	records, err := readRecords(b, t.Size)
	if err != nil {
		return err
	}
	for i, r := range records {
		if i == t.Rank {
			continue
		}
		if err := t.take(r, blocks.of(buf, i), i); err != nil {
			return err
		}
	}
	return nil
}

// take stores a block that source sent in b.
func (t *Team) take(r record, b []byte, source int) error {
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
func (t *Team) levelledScatter(buf []byte, blocks Blocks, mine []byte, root int) error {
	circles := t.circles(root)
	var b []byte
	if t.Rank == root {
		b = t.pack(buf, blocks)
	} else {
		last := len(circles) - 1
		c := &circles[last]
		b = make([]byte, len(t.spokenFor(c.level, t.Rank))*recordMost)
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
		if err := t.handOut(&circles[i], records); err != nil {
			return err
		}
	}
	if t.Rank != root {
		return t.take(records[t.Rank], mine, root)
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
func (t *Team) pack(buf []byte, blocks Blocks) []byte {
	var b []byte
	for i := range t.Size {
		if i != t.Rank {
			b = appendRecord(b, i, blocks.of(buf, i))
		}
	}
	return b
}

// handOut sends every other member of c the records of the ranks that it represents.
func (t *Team) handOut(c *circle, records []record) error {
	for i, m := range c.members {
		if i == c.Rank {
			continue
		}
		var b []byte
		for _, rank := range t.spokenFor(c.level, m) {
			b = append(b, records[rank].whole...)
		}
		if err := c.send(b, i); err != nil {
			return err
		}
	}
	return nil
}
