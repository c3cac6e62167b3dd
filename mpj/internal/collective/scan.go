package collective

// Scan combines the contributions of all lower ranks into acc, which holds that of this rank. In
// every step, it doubles the run of combined ranks that ends at this rank (Hillis and Steele,
// 1986).
func (t *Team) Scan(acc []byte, r Reduction) error {
	if err := t.begin(unrooted(Scan)); err != nil {
		return err
	}
	s := borrow(len(acc))
	defer s.free()
	return t.end(t.scan(acc, s.b, r, func([]byte, int) {}))
}

// Exscan combines the send buffers of all lower ranks into recv. At rank 0, recv is unchanged. send
// and recv may be the same.
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

// scan performs the steps. It calls take with each lower run before combining it, and with the
// step's distance k.
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
