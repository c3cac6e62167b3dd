package collective

func barrier(t *Team) error {
	switch t.choose(Barrier, 0) {
	case Levelled:
		return levelledBarrier(t)
	case Binomial:
		return treeBarrier(t)
	case Linear:
		return linearBarrier(t)
	}
	return dissemination(t)
}

// dissemination ensures in k steps that the 2^k ranks below have arrived (Hensgen, Finkel and
// Manber, 1988).
func dissemination(t *Team) error {
	for k := 1; k < t.Size; k *= 2 {
		if err := t.exchange(nil, t.up(k), nil, t.down(k)); err != nil {
			return err
		}
	}
	return nil
}

// treeBarrier sends messages up the binomial tree of rank 0 and down again: 2(n-1) messages in total
// instead of n log n.
func treeBarrier(t *Team) error {
	if err := arrive(t); err != nil {
		return err
	}
	return binomialBcast(t, nil, 0)
}

// arrive waits for the subtree of this rank, and tells its parent.
func arrive(t *Team) error {
	for bit := 1; bit < t.Size; bit *= 2 {
		if t.Rank&bit != 0 {
			return t.send(nil, t.Rank-bit)
		}
		if t.Rank+bit < t.Size {
			if err := t.recv(nil, t.Rank+bit); err != nil {
				return err
			}
		}
	}
	return nil
}
