package collective

func allreduce(t *Team, send, recv []byte, r Reduction) error {
	if t.Size == 1 {
		copy(recv, send)
		return nil
	}
	switch a := t.choose(Allreduce, len(send)); {
	case a == Levelled && t.Levels.contiguous:
		return levelledAllreduce(t, send, recv, r)
	case a == RecursiveDoubling && powerOfTwo(t.Size):
		return doublingAllreduce(t, send, recv, r)
	case a == Rabenseifner && powerOfTwo(t.Size), a == Ring:
		return scatteredAllreduce(t, send, recv, r, a == Ring)
	case a == Bruck, a == RecursiveDoubling && t.Size*len(send) <= foldedUpTo:
		return foldedAllreduce(t, send, recv, r, false)
	case a == Linear:
		return foldedAllreduce(t, send, recv, r, true)
	case a == Rabenseifner:
		return scatteredAllreduce(t, send, recv, r, true)
	}
	if err := binomialReduce(t, send, recv, r, 0); err != nil {
		return err
	}
	return binomialBcast(t, recv, 0)
}

// foldedUpTo is the size of the data of all ranks together, in bytes, up to which each rank gathers
// and combines all data itself where recursive doubling is impossible. This takes half the steps of
// a tree.
const foldedUpTo = 8 << 10

// doublingAllreduce swaps, in every step, all values with a rank twice as far away. Size is a power
// of two.
func doublingAllreduce(t *Team, send, recv []byte, r Reduction) error {
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

// foldedAllreduce gathers the send buffers of all ranks, in one step or by Bruck's algorithm, and
// each rank combines them itself. It takes few steps for any number of ranks, and suits small data.
func foldedAllreduce(t *Team, send, recv []byte, r Reduction, linear bool) error {
	s := borrow(t.Size * len(send))
	defer s.free()
	all := Even(len(send))
	copy(all.of(s.b, t.Rank), send)
	var err error
	if linear {
		err = linearAllgather(t, s.b, all)
	} else {
		err = bruckAllgather(t, s.b, all)
	}
	if err != nil {
		return err
	}
	copy(recv, r.fold(s.b, t.Size, len(send)))
	return nil
}

// scatteredAllreduce makes each rank combine a share of the elements, and then gathers the shares.
// Shares made by halving are gathered by doubling (Rabenseifner, 2004), others around the ring.
func scatteredAllreduce(t *Team, send, recv []byte, r Reduction, ring bool) error {
	if ring {
		mine := func(i int) (int, int) {
			from, to := share(len(send)/r.Size, t.Size, i)
			return from * r.Size, to * r.Size
		}
		return ringAllreduce(t, send, recv, r, mine)
	}
	if _, _, err := halve(t, send, recv, r); err != nil {
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
func ringAllreduce(t *Team, send, recv []byte, r Reduction, mine func(rank int) (from, to int)) error {
	from, to := mine(t.Rank)
	if err := pairwiseReduceScatter(t, send, recv[from:to], r, mine); err != nil {
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
