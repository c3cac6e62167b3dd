package collective

// Scan combines into acc, which holds the contribution of this rank, those of
// all lower ranks. It doubles, in every step, the run of ranks that end at its
// own and are combined (Hillis and Steele, 1986).
func (t *Team) Scan(acc []byte, r Reduction) error {
	if err := t.begin(unrooted(Scan)); err != nil {
		return err
	}
	s := borrow(len(acc))
	defer s.free()
	return t.end(t.scan(acc, s.b, r, func([]byte, int) {}))
}

// Exscan combines into recv the send of all lower ranks. At rank 0 recv stays
// as it is. The two may be the same.
func (t *Team) Exscan(send, recv []byte, r Reduction) error {
	if err := t.begin(unrooted(Scan)); err != nil {
		return err
	}
	s := borrow(2 * len(send))
	defer s.free()
	acc, lower := s.b[:len(send)], s.b[len(send):]
	copy(acc, send)
	return t.end(t.scan(acc, lower, r, func(lower []byte, k int) {
		if k == 1 {
			copy(recv, lower)
		} else {
			r.Combine(lower, recv)
		}
	}))
}

// scan tells take of each run below that it combines, and the step k at which.
func (t *Team) scan(acc, lower []byte, r Reduction, take func(lower []byte, k int)) error {
	for k := 1; k < t.Size; k *= 2 {
		above, below := t.Rank+k < t.Size, t.Rank >= k
		var err error
		switch {
		case above && below:
			err = t.exchange(acc, t.Rank+k, lower, t.Rank-k)
		case above:
			err = t.send(acc, t.Rank+k)
		case below:
			err = t.recv(lower, t.Rank-k)
		}
		if err != nil {
			return err
		}
		if below {
			take(lower, k)
			r.Combine(lower, acc)
		}
	}
	return nil
}
