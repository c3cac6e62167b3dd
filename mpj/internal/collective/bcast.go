package collective

import "github.com/p2pmpi/p2pmpi/mpj/internal/words"

// Bcast copies root's b to b of every member.
func (t *Team) Bcast(b []byte, root int) error {
	if err := t.begin(rooted(Bcast, root)); err != nil {
		return err
	}
	return t.end(t.bcast(b, root))
}

// bcast is Bcast within another operation.
func (t *Team) bcast(b []byte, root int) error {
	if t.Size == 1 {
		return nil
	}
	switch t.choose(Bcast, len(b)) {
	case Levelled:
		return t.levelledBcast(b, root)
	case ScatterAllgather:
		return t.scatterAllgather(b, root)
	case Chain:
		return t.chain(b, root)
	}
	return t.binomialBcast(b, root)
}

func (t *Team) binomialBcast(b []byte, root int) error {
	if parent, ok := t.parent(root); ok {
		if err := t.recv(b, parent); err != nil {
			return err
		}
	}
	return t.passOn(b, root)
}

// BcastWhole is Bcast for members that do not know the length. It returns root's b.
func (t *Team) BcastWhole(b []byte, root int) ([]byte, error) {
	if err := t.begin(rooted(Bcast, root)); err != nil {
		return nil, err
	}
	b, err := t.bcastWhole(b, root)
	return b, t.end(err)
}

func (t *Team) bcastWhole(b []byte, root int) ([]byte, error) {
	if parent, ok := t.parent(root); ok {
		whole, s, err := t.Engine.RecvWhole(t.Context, t.world(parent), words.AnyTag)
		if err != nil {
			return nil, t.heard(err)
		}
		if err := t.sameCall(s, parent); err != nil {
			return nil, err
		}
		b = whole
	}
	return b, t.passOn(b, root)
}

// parent returns the parent of this rank in the binomial tree of root. With ranks counted from
// root, the parent of a rank is the rank without its lowest set bit; its children add one lower bit
// each.

func (t *Team) parent(root int) (rank int, ok bool) {
	v := t.down(root)
	return (v&(v-1) + root) % t.Size, v != 0
}

// passOn sends b to the children in the tree, starting with the one that has the largest subtree.
func (t *Team) passOn(b []byte, root int) error {
	v := t.down(root)
	for bit := t.subtree(v) / 2; bit > 0; bit /= 2 {
		if v+bit >= t.Size {
			continue
		}
		if err := t.send(b, (v+bit+root)%t.Size); err != nil {
			return err
		}
	}
	return nil
}

// subtree returns the number of ranks in the subtree of v, if the size were a power of two.
func (t *Team) subtree(v int) int {
	bit := 1
	for bit < t.Size && v&bit == 0 {
		bit *= 2
	}
	return bit
}

// scatterAllgather sends every rank a share of b down the binomial tree, and then passes the shares
// around the ring. Each byte leaves a rank about twice, not log n times (Barnett, Shuler, van de
// Geijn and others, 1994).
func (t *Team) scatterAllgather(b []byte, root int) error {
	v := t.down(root)
	if err := t.scatterShares(b, v, root); err != nil {
		return err
	}
	right, left := t.up(1), t.down(1)
	for k := range t.Size - 1 {
		out := t.shareOf(b, v-k)
		in := t.shareOf(b, v-1-k)
		if err := t.exchange(out, right, in, left); err != nil {
			return err
		}
	}
	return nil
}

// shareOf returns the share of the rank at distance v from root.
func (t *Team) shareOf(b []byte, v int) []byte {
	from, to := share(len(b), t.Size, (v+t.Size)%t.Size)
	return b[from:to]
}

// scatterShares sends the shares of each subtree to its root.
func (t *Team) scatterShares(b []byte, v, root int) error {
	bit := t.subtree(v)
	if parent, ok := t.parent(root); ok {
		if err := t.recv(t.run(b, v, v+bit), parent); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit >= t.Size {
			continue
		}
		if err := t.send(t.run(b, v+bit, v+2*bit), (v+bit+root)%t.Size); err != nil {
			return err
		}
	}
	return nil
}

// run returns the shares of ranks v to w-1 that exist.
func (t *Team) run(b []byte, v, w int) []byte {
	from, _ := share(len(b), t.Size, v)
	to, _ := share(len(b), t.Size, min(w, t.Size))
	return b[from:to]
}

// segment is the number of bytes that chain passes on at a time. Smaller segments fill the chain
// sooner; larger ones need fewer messages.
const segment = 128 << 10

// chain passes b from rank to rank in segments: a rank sends one segment while it receives the
// next.
func (t *Team) chain(b []byte, root int) error {
	v := t.down(root)
	left, right, last := t.down(1), t.up(1), v == t.Size-1
	piece := func(i int) []byte { return b[min(i*segment, len(b)):min((i+1)*segment, len(b))] }
	pieces := len(b)/segment + 1 // the last is shorter or empty, so that a different length is noticed
	for i := range pieces + 1 {
		var err error
		receives, sends := v > 0 && i < pieces, !last && i > 0
		switch {
		case receives && sends:
			err = t.exchange(piece(i-1), right, piece(i), left)
		case receives:
			err = t.recv(piece(i), left)
		case sends:
			err = t.send(piece(i-1), right)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
