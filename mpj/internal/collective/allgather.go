package collective

import "math/bits"

func allgather(t *Team, buf []byte, blocks Blocks) error {
	if t.Size == 1 {
		return nil
	}
	even := blocks.Counts == nil
	switch a := t.choose(Allgather, blocks.largest(t.Size)); {
	case a == Levelled && even && t.Levels.contiguous:
		return levelledAllgather(t, buf, blocks)
	case a == RecursiveDoubling && even && powerOfTwo(t.Size):
		return doublingAllgather(t, buf, blocks)
	case (a == Bruck || a == RecursiveDoubling) && even:
		return bruckAllgather(t, buf, blocks)
	case a == Linear:
		return linearAllgather(t, buf, blocks)
	}
	return ringAllgather(t, buf, blocks)
}

func powerOfTwo(n int) bool { return bits.OnesCount(uint(n)) == 1 }

// ringAllgather forwards, in every step, the block received in the previous step.
func ringAllgather(t *Team, buf []byte, blocks Blocks) error {
	right, left := t.up(1), t.down(1)
	for k := range t.Size - 1 {
		out, in := blocks.of(buf, t.down(k)), blocks.of(buf, t.down(k+1))
		if err := t.exchange(out, right, in, left); err != nil {
			return err
		}
	}
	return nil
}

// doublingAllgather swaps, in every step, all its blocks with a rank twice as far away. Size is a
// power of two.
func doublingAllgather(t *Team, buf []byte, blocks Blocks) error {
	for bit := 1; bit < t.Size; bit *= 2 {
		mine := t.Rank &^ (bit - 1)
		theirs := mine ^ bit
		err := t.exchange(blocks.span(buf, mine, mine+bit), t.Rank^bit, blocks.span(buf, theirs, theirs+bit), t.Rank^bit)
		if err != nil {
			return err
		}
	}
	return nil
}

// span returns the even blocks of ranks from..to-1.
func (b Blocks) span(buf []byte, from, to int) []byte { return buf[from*b.Each : to*b.Each] }

// bruckAllgather has, after k steps, the blocks of 2^k consecutive ranks, starting with its own
// rank. Finally it rotates the blocks into place (Bruck, Ho, Kipnis, Upfal and Weathersby, 1997).
func bruckAllgather(t *Team, buf []byte, blocks Blocks) error {
	s := borrow(t.Size * blocks.Each)
	defer s.free()
	copy(s.b, blocks.of(buf, t.Rank))
	for have := 1; have < t.Size; have *= 2 {
		n := min(have, t.Size-have)
		err := t.exchange(blocks.span(s.b, 0, n), t.down(have), blocks.span(s.b, have, have+n), t.up(have))
		if err != nil {
			return err
		}
	}
	head := (t.Size - t.Rank) * blocks.Each
	copy(buf[t.Rank*blocks.Each:], s.b[:head])
	copy(buf[:t.Rank*blocks.Each], s.b[head:])
	return nil
}
