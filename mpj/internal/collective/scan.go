package collective

func scan(t *Team, acc []byte, r Reduction) error {
	s := borrow(len(acc))
	defer s.free()
	return doublingScan(t, acc, s.b, r, func([]byte, int) {})
}

func exscan(t *Team, send, recv []byte, r Reduction) error {
	s := borrow(2 * len(send))
	defer s.free()
	acc, lower := s.b[:len(send)], s.b[len(send):]
	copy(acc, send)
	return doublingScan(t, acc, lower, r, func(lower []byte, k int) {
		if k == 1 {
			copy(recv, lower)
		} else {
			r.combine(lower, recv)
		}
	})
}

// doublingScan doubles, in every step, the run of combined ranks that ends at this rank (Hillis and
// Steele, 1986). Before it combines a lower run, it calls take with that run and the distance k of
// the step.
func doublingScan(t *Team, acc, lower []byte, r Reduction, take func(lower []byte, k int)) error {
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
			r.combine(lower, acc)
		}
	}
	return nil
}
