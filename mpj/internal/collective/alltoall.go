package collective

func alltoall(t *Team, send []byte, out Blocks, recv []byte, in Blocks) error {
	even := out.Counts == nil && in.Counts == nil
	switch a := t.choose(Alltoall, out.Each); {
	case a == Levelled && even:
		return levelledAlltoall(t, send, recv, out.Each)
	case a == Bruck && even:
		return bruckAlltoall(t, send, recv, out.Each)
	case a == Linear:
		return linearAlltoall(t, send, out, recv, in)
	}
	return pairwise(t, send, out, recv, in)
}

// pairwise exchanges, in step k, blocks with the ranks at distance k.
func pairwise(t *Team, send []byte, out Blocks, recv []byte, in Blocks) error {
	copy(in.of(recv, t.Rank), out.of(send, t.Rank))
	for k := 1; k < t.Size; k++ {
		dest, source := t.up(k), t.down(k)
		if powerOfTwo(t.Size) {
			dest, source = t.Rank^k, t.Rank^k
		}
		if err := t.exchange(out.of(send, dest), dest, in.of(recv, source), source); err != nil {
			return err
		}
	}
	return nil
}

// bruckAlltoall moves blocks by powers of two: block k moves k ranks up, in the steps of the bits of
// k (Bruck and others, 1997). It sends log n larger messages instead of n-1 small messages.
func bruckAlltoall(t *Team, send, recv []byte, each int) error {
	n := t.Size
	s := borrow(2 * n * each)
	defer s.free()
	turned, packed := s.b[:n*each], s.b[n*each:]
	copy(turned, send[t.Rank*each:])
	copy(turned[(n-t.Rank)*each:], send[:t.Rank*each])
	for bit := 1; bit < n; bit *= 2 {
		moving := 0
		for k := bit; k < n; k++ {
			if k&bit != 0 {
				copy(packed[moving:], turned[k*each:(k+1)*each])
				moving += each
			}
		}
		if err := t.exchange(packed[:moving], t.up(bit), recv[:moving], t.down(bit)); err != nil {
			return err
		}
		from := 0
		for k := bit; k < n; k++ {
			if k&bit != 0 {
				copy(turned[k*each:(k+1)*each], recv[from:])
				from += each
			}
		}
	}
	for k := range n { // block k is now the block of the rank k below
		copy(recv[t.down(k)*each:], turned[k*each:(k+1)*each])
	}
	return nil
}

func alltoallInPlace(t *Team, buf []byte, blocks Blocks) error {
	s := borrow(blocks.largest(t.Size))
	defer s.free()
	for k := range t.Size { // in step k, pairs of ranks whose sum is k modulo n
		other := (k - t.Rank + t.Size) % t.Size
		if other == t.Rank {
			continue
		}
		mine := blocks.of(buf, other)
		in := s.b[:len(mine)]
		if err := t.exchange(mine, other, in, other); err != nil {
			return err
		}
		copy(mine, in)
	}
	return nil
}
