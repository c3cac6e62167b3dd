package collective

// Allreduce combines the send buffers of all members into recv of each. send and recv may be the
// same.
func (t *Team) Allreduce(send, recv []byte, r Reduction) error {
	if err := t.begin(unrooted(Allreduce)); err != nil {
		return err
	}
	return t.end(t.allreduce(send, recv, r))
}

func (t *Team) allreduce(send, recv []byte, r Reduction) error {
	if t.Size == 1 {
		copy(recv, send)
		return nil
	}
	switch a := t.choose(Allreduce, len(send)); {
	case a == Levelled && t.Levels.contiguous:
		return t.levelledAllreduce(send, recv, r)
	case a == RecursiveDoubling && powerOfTwo(t.Size):
		return t.doublingAllreduce(send, recv, r)
	case a == Rabenseifner && powerOfTwo(t.Size), a == Ring:
		return t.scatteredAllreduce(send, recv, r, a == Ring)
	case a == Bruck, a == RecursiveDoubling && t.Size*len(send) <= foldedUpTo:
		return t.foldedAllreduce(send, recv, r, t.bruckAllgather)
	case a == Linear:
		return t.foldedAllreduce(send, recv, r, t.linearAllgather)
	case a == Rabenseifner:
		return t.scatteredAllreduce(send, recv, r, true)
	}
	if err := t.binomialReduce(send, recv, r, 0); err != nil {
		return err
	}
	return t.binomialBcast(recv, 0)
}

// foldedUpTo bounds the data of all ranks together, in bytes, up to which each rank gathers and
// combines it itself. This applies where recursive doubling is impossible, and takes half the steps
// of a tree.
const foldedUpTo = 8 << 10

// doublingAllreduce swaps, in every step, all values with a rank twice as far away. Size is a power
// of two.
func (t *Team) doublingAllreduce(send, recv []byte, r Reduction) error {
	s := borrow(len(send))
	defer s.free()
	copy(recv, send)
	a := accumulator{recv, s.b}
	for bit := 1; bit < t.Size; bit *= 2 {
		if err := t.exchange(a.mine, t.Rank^bit, a.other, t.Rank^bit); err != nil {
			return err
		}
		a.take(r, 0, len(send), t.Rank&bit != 0)
	}
	copy(recv, a.mine)
	return nil
}

// foldedAllreduce gathers the send buffers of all ranks, and each rank combines them itself. It
// takes few steps for any size, and is for little data.
func (t *Team) foldedAllreduce(send, recv []byte, r Reduction, gather func([]byte, Blocks) error) error {
	s := borrow(t.Size * len(send))
	defer s.free()
	all := Even(len(send))
	copy(all.of(s.b, t.Rank), send)
	if err := gather(s.b, all); err != nil {
		return err
	}
	copy(recv, r.fold(s.b, t.Size, len(send)))
	return nil
}

// scatteredAllreduce makes each rank combine a share of the elements, and then gathers the shares.
// Shares made by halving are gathered by doubling (Rabenseifner, 2004), others around the ring.
func (t *Team) scatteredAllreduce(send, recv []byte, r Reduction, ring bool) error {
	if ring {
		mine := func(i int) (int, int) {
			from, to := share(len(send)/r.Size, t.Size, i)
			return from * r.Size, to * r.Size
		}
		return t.ringAllreduce(send, recv, r, mine)
	}
	if _, _, err := t.halve(send, recv, r); err != nil {
		return err
	}
	for bit := t.Size / 2; bit > 0; bit /= 2 { // the steps of halve in reverse
		from, to := 0, len(recv)
		for b := 1; b < bit; b *= 2 {
			from, to = half(from, to, r, t.Rank&b != 0)
		}
		upper := t.Rank&bit != 0
		haveFrom, haveTo := half(from, to, r, upper)
		lackFrom, lackTo := half(from, to, r, !upper)
		if err := t.exchange(recv[haveFrom:haveTo], t.Rank^bit, recv[lackFrom:lackTo], t.Rank^bit); err != nil {
			return err
		}
	}
	return nil
}

// ringAllreduce combines each share at its rank, and sends the results around the ring.
func (t *Team) ringAllreduce(send, recv []byte, r Reduction, mine func(rank int) (from, to int)) error {
	from, to := mine(t.Rank)
	if err := t.pairwiseReduceScatter(send, recv[from:to], r, mine); err != nil {
		return err
	}
	right, left := t.up(1), t.down(1)
	for k := range t.Size - 1 {
		outFrom, outTo := mine(t.down(k))
		inFrom, inTo := mine(t.down(k + 1))
		if err := t.exchange(recv[outFrom:outTo], right, recv[inFrom:inTo], left); err != nil {
			return err
		}
	}
	return nil
}
