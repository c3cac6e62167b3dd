package core

import (
	"fmt"
	"math"
)

// A cart is a Cartesian grid of ranks. The last coordinate varies fastest.
type cart struct {
	dims    []int
	periods []bool
}

func (*cart) kind() Topology { return CartTopology }

// edges returns the neighbours below and above the rank in each dimension. A message sent down
// arrives from above, so the two directions have separate tags.
func (t *cart) edges(rank int) (in, out []edge) {
	for dim := range t.dims {
		below, above := t.shift(rank, dim, -1), t.shift(rank, dim, 1)
		down, up := int32(2*dim), int32(2*dim+1)
		out = append(out, edge{below, down}, edge{above, up})
		in = append(in, edge{below, up}, edge{above, down})
	}
	return in, out
}

// gridSize returns the number of ranks in a grid, or -1 if a dimension is negative or the number
// overflows an int.
func gridSize(dims []int) int {
	n := 1
	for _, d := range dims {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return -1
		}
		n *= d
	}
	return n
}

func (t *cart) coords(rank int) []int {
	coords := make([]int, len(t.dims))
	for i := len(t.dims) - 1; i >= 0; i-- {
		coords[i] = rank % t.dims[i]
		rank /= t.dims[i]
	}
	return coords
}

// rank returns the rank at coords, wrapping periodic dimensions, or ProcNull if coords are outside
// the grid.
func (t *cart) rank(coords []int) int {
	rank := 0
	for i, at := range coords {
		d := t.dims[i]
		if at < 0 || at >= d {
			if !t.periods[i] {
				return ProcNull
			}
			at = (at%d + d) % d
		}
		rank = rank*d + at
	}
	return rank
}

// shift returns the rank that is disp steps away in dim, or ProcNull.
func (t *cart) shift(rank, dim, disp int) int {
	coords := t.coords(rank)
	if d := t.dims[dim]; !t.periods[dim] && (disp > d || disp < -d) {
		return ProcNull // also avoids overflow in the addition below
	}
	coords[dim] += disp
	return t.rank(coords)
}

// CartCreate makes d the communicator of a grid of the first ranks of c, with len(dims) dimensions,
// which is periodic in dimension i if periods[i] is true. It reports whether this rank is in the
// grid. With reorder, ranks may be renumbered so that neighbours are on the same machine. All ranks
// of c call CartCreate with the same arguments. call is the name of the program's function.
func CartCreate(c, d *Comm, call string, dims []int, periods []bool, reorder bool) (member bool, err error) {
	if err := c.CheckIntra(); err != nil {
		return false, err
	}
	if c.process.checks {
		if err := Agree(c, call, alikeCall("dims %v, periods %v, reorder %t", dims, periods, reorder), nil); err != nil {
			return false, err
		}
	}
	t, invalid := newCart(c, dims, periods)
	arguments := append([]int{flag(reorder)}, dims...)
	for _, p := range periods {
		arguments = append(arguments, flag(p))
	}
	d.topology = t
	return carve(c, d, arguments, func() []int { return cartOrder(c, t, reorder) }, invalid)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// newCart returns the grid that the arguments describe.
func newCart(c *Comm, dims []int, periods []bool) (*cart, error) {
	if len(dims) != len(periods) {
		return nil, c.Failf(ErrDims, "%d dimensions and %d periods", len(dims), len(periods))
	}
	for i, d := range dims {
		if d < 1 {
			return nil, c.Failf(ErrDims, "dims[%d] is %d", i, d)
		}
	}
	if n := gridSize(dims); n < 0 || n > c.size {
		return nil, c.Failf(ErrDims, "grid %v for %d ranks", dims, c.size)
	}
	return &cart{dims: append([]int(nil), dims...), periods: append([]bool(nil), periods...)}, nil
}

// cartOf returns the grid of c.
func cartOf(c *Comm) (*cart, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t, ok := c.topology.(*cart)
	if !ok {
		return nil, c.Failf(ErrTopology, "communicator %q has %v", c.Name(), TopologyOf(c))
	}
	return t, nil
}

// CartdimGet returns the number of dimensions of the grid of c.
func CartdimGet(c *Comm) (int, error) {
	t, err := cartOf(c)
	if err != nil {
		return 0, err
	}
	return len(t.dims), nil
}

// CartGet returns the grid of c, and the coordinates of this rank in it.
func CartGet(c *Comm) (dims []int, periods []bool, coords []int, err error) {
	t, err := cartOf(c)
	if err != nil {
		return nil, nil, nil, err
	}
	return append(dims, t.dims...), append(periods, t.periods...), t.coords(c.rank), nil
}

// CartRank returns the rank at coords. Coordinates outside a periodic dimension are wrapped.
func CartRank(c *Comm, coords []int) (int, error) {
	t, err := cartOf(c)
	if err != nil {
		return Undefined, err
	}
	if len(coords) != len(t.dims) {
		return Undefined, c.Failf(ErrDims, "%d coordinates in %d dimensions", len(coords), len(t.dims))
	}
	rank := t.rank(coords)
	if rank == ProcNull {
		return Undefined, c.Failf(ErrArg, "coordinates %v in a grid of %v", coords, t.dims)
	}
	return rank, nil
}

// CartCoords returns the coordinates of rank.
func CartCoords(c *Comm, rank int) ([]int, error) {
	t, err := cartOf(c)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.size {
		return nil, c.Failf(ErrRank, "rank %d, ranks are 0..%d", rank, c.size-1)
	}
	return t.coords(rank), nil
}

// CartShift returns the rank from which this rank receives, and the rank to which it sends, when
// every rank sends disp steps up in dimension dim, or down if disp is negative. A rank beyond the
// edge of the grid is ProcNull.
func CartShift(c *Comm, dim, disp int) (source, dest int, err error) {
	t, err := cartOf(c)
	if err != nil {
		return Undefined, Undefined, err
	}
	if dim < 0 || dim >= len(t.dims) {
		return Undefined, Undefined, c.Failf(ErrDims, "dimension %d of %d", dim, len(t.dims))
	}
	if t.periods[dim] {
		disp %= t.dims[dim]
	}
	return t.shift(c.rank, dim, -disp), t.shift(c.rank, dim, disp), nil
}

// CartSub divides the grid of c into subgrids, such as rows and columns, that keep dimension i if
// remain[i] is true. It makes d the communicator of the subgrid that contains this rank. All ranks of
// c call CartSub with the same argument. call is the name of the program's function.
func CartSub(c, d *Comm, call string, remain []bool) error {
	t, err := cartOf(c)
	if err != nil {
		return err
	}
	if len(remain) != len(t.dims) {
		return c.Failf(ErrDims, "remain has %d values for %d dimensions", len(remain), len(t.dims))
	}
	sub := new(cart)
	color, key := 0, 0
	for i, at := range t.coords(c.rank) {
		if remain[i] {
			sub.dims, sub.periods = append(sub.dims, t.dims[i]), append(sub.periods, t.periods[i])
			key = key*t.dims[i] + at
		} else {
			color = color*t.dims[i] + at
		}
	}
	if c.process.checks {
		if err := Agree(c, call, plainCall(fmt.Sprintf("color %d, key %d", color, key)), nil); err != nil {
			return err
		}
	}
	d.topology = sub
	_, err = Split(c, d, color, key)
	return err
}

// CartMap returns the rank that this process would have in the grid that CartCreate makes with
// reorder, or Undefined if the process would be outside the grid.
func CartMap(c *Comm, dims []int, periods []bool) (int, error) {
	if err := c.CheckIntra(); err != nil {
		return Undefined, err
	}
	t, err := newCart(c, dims, periods)
	if err != nil {
		return Undefined, err
	}
	for i, r := range cartOrder(c, t, true) {
		if r == c.rank {
			return i, nil
		}
	}
	return Undefined, nil
}
