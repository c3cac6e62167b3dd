package collective

func reduce(t *Team, send, recv []byte, r Reduction, root int) error {
	if t.Size == 1 {
		copy(recv, send)
		return nil
	}
	switch t.choose(Reduce, len(send)) {
	case Levelled:
		if t.Levels.contiguous {
			return levelledReduce(t, send, recv, r, root)
		}
	case Rabenseifner, Pairwise:
		return scatteredReduce(t, send, recv, r, root)
	}
	return binomialReduce(t, send, recv, r, root)
}

// binomialReduce uses the binomial tree of rank 0 for every root, because in that tree every subtree
// is a run of ranks.
func binomialReduce(t *Team, send, recv []byte, r Reduction, root int) error {
	s := borrow(2 * len(send))
	defer s.free()
	a := accumulator{s.b[:len(send)], s.b[len(send):]}
	copy(a.mine, send)
	for bit := 1; bit < t.Size; bit *= 2 {
		if t.Rank&bit != 0 {
			if err := t.send(a.mine, t.Rank-bit); err != nil {
				return err
			}
			break
		}
		if t.Rank+bit >= t.Size {
			continue
		}
		if err := t.recv(a.other, t.Rank+bit); err != nil {
			return err
		}
		a.take(r, 0, len(send), false)
	}
	switch {
	case t.Rank == 0 && root == 0:
		copy(recv, a.mine)
	case t.Rank == 0:
		return t.send(a.mine, root)
	case t.Rank == root:
		return t.recv(recv, 0)
	}
	return nil
}

// scatteredReduce combines one share of the items at each rank, and gathers the shares at root.
func scatteredReduce(t *Team, send, recv []byte, r Reduction, root int) error {
	s := borrow(len(send))
	defer s.free()
	from, to, err := reduceShare(t, send, s.b, r)
	if err != nil {
		return err
	}
	if t.Rank != root {
		return t.send(s.b[from:to], root)
	}
	copy(recv[from:to], s.b[from:to])
	for i := range t.Size {
		if i == root {
			continue
		}
		from, to := shareAfter(t, len(send), r, i)
		if err := t.recv(recv[from:to], i); err != nil {
			return err
		}
	}
	return nil
}

// reduceShare combines one share of the items at each rank. It returns the byte range of this
// rank's share in buf, which is as long as send. buf may be send.
func reduceShare(t *Team, send, buf []byte, r Reduction) (from, to int, err error) {
	if powerOfTwo(t.Size) {
		return halve(t, send, buf, r)
	}
	from, to = shareAfter(t, len(send), r, t.Rank)
	err = pairwiseReduceScatter(t, send, buf[from:to], r, func(i int) (int, int) { return shareAfter(t, len(send), r, i) })
	return from, to, err
}

// shareAfter returns the byte range of rank's share after reduceShare, for a vector of length
// bytes.
func shareAfter(t *Team, length int, r Reduction, rank int) (from, to int) {
	if powerOfTwo(t.Size) {
		to = length
		for bit := 1; bit < t.Size; bit *= 2 {
			from, to = half(from, to, r, rank&bit != 0)
		}
		return from, to
	}
	from, to = share(length/r.Size, t.Size, rank)
	return from * r.Size, to * r.Size
}

// half returns one half of the byte range from..to, in whole items.
func half(from, to int, r Reduction, upper bool) (int, int) {
	middle := from + (to-from)/r.Size/2*r.Size
	if upper {
		return middle, to
	}
	return from, middle
}

// halve swaps halves of its remaining range, first with the neighbour and then with more distant
// ranks. After every step, the result covers a complete run of ranks (Rabenseifner, 2004). Size is a
// power of two.
func halve(t *Team, send, buf []byte, r Reduction) (from, to int, err error) {
	s := borrow(len(send))
	defer s.free()
	a := accumulator{send, s.b}
	to = len(send)
	for bit := 1; bit < t.Size; bit *= 2 {
		upper := t.Rank&bit != 0
		keepFrom, keepTo := half(from, to, r, upper)
		giveFrom, giveTo := half(from, to, r, !upper)
		if err := t.exchange(a.mine[giveFrom:giveTo], t.Rank^bit, a.other[keepFrom:keepTo], t.Rank^bit); err != nil {
			return 0, 0, err
		}
		if bit == 1 { // take must not write to send
			copy(buf[keepFrom:keepTo], send[keepFrom:keepTo])
			a.mine = buf
		}
		a.take(r, keepFrom, keepTo, upper)
		from, to = keepFrom, keepTo
	}
	copy(buf[from:to], a.mine[from:to])
	return from, to, nil
}
