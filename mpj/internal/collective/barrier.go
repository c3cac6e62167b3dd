package collective

// Barrier returns when every member has called it.
func (t *Team) Barrier() error {
	if err := t.begin(unrooted(Barrier)); err != nil {
		return err
	}
	return t.end(t.barrier())
}

func (t *Team) barrier() error {
	switch t.choose(Barrier, 0) {
	case Levelled:
		return t.levelledBarrier()
	case Binomial:
		return t.treeBarrier()
	case Linear:
		return t.linearBarrier()
	}
	return t.dissemination()
}

// dissemination learns in k steps that the 2^k ranks below have arrived (Hensgen, Finkel and
// Manber, 1988).
func (t *Team) dissemination() error {
	for k := 1; k < t.Size; k *= 2 {
		if err := t.exchange(nil, t.up(k), nil, t.down(k)); err != nil {
			return err
		}
	}
	return nil
}

// treeBarrier goes up the binomial tree of rank 0 and down again, with 2(n-1) messages in all
// instead of n log n.
func (t *Team) treeBarrier() error {
	if err := t.arrive(); err != nil {
		return err
	}
	return t.binomialBcast(nil, 0)
}

// arrive waits for the subtree of this rank, and tells its parent.
func (t *Team) arrive() error {
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
