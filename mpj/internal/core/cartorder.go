package core

// cartOrder returns the rank in c for each rank of grid t. With reorder, it divides the grid, if
// possible, into equal boxes that each fill one machine, such that the fewest neighbours are on
// different machines. All ranks compute the same order.
func cartOrder(c *Comm, t *cart, reorder bool) []int {
	n := gridSize(t.dims)
	order := unordered(n)()
	machines := machinesOf(c, n)
	if !reorder || len(machines) < 2 {
		return order
	}
	box := t.bestBox(len(machines[0]))
	if box == nil {
		return order
	}
	boxes := make([]int, len(t.dims)) // number of boxes in each dimension
	for i, d := range t.dims {
		boxes[i] = d / box[i]
	}
	for rank := range n {
		which, inside := 0, 0
		for i, at := range t.coords(rank) {
			which = which*boxes[i] + at/box[i]
			inside = inside*box[i] + at%box[i]
		}
		order[rank] = machines[which][inside]
	}
	return order
}

// machinesOf returns the first n ranks of c grouped by machine, in rank order, or nil if the machines
// do not all have the same number of ranks.
func machinesOf(c *Comm, n int) [][]int {
	var machines [][]int
	at := make(map[int]int) // index in machines
	for rank := range n {
		m := PlaceOf(c, rank).Machine
		i, ok := at[m]
		if !ok {
			i = len(machines)
			at[m] = i
			machines = append(machines, nil)
		}
		machines[i] = append(machines[i], rank)
	}
	for _, ranks := range machines {
		if len(ranks) != len(machines[0]) {
			return nil
		}
	}
	return machines
}

// bestBox returns the sides of the box of volume ranks that divides t evenly and has the smallest
// surface, or nil if no such box exists. Sides that span the whole grid do not count as surface.
func (t *cart) bestBox(volume int) []int {
	var best []int
	least := 0
	box := make([]int, len(t.dims))
	var try func(dim, rest int)
	try = func(dim, rest int) {
		if dim == len(box) {
			if s := t.surface(box, volume); rest == 1 && (best == nil || s < least) {
				best, least = append([]int(nil), box...), s
			}
			return
		}
		for side := 1; side <= t.dims[dim] && side <= rest; side++ {
			if t.dims[dim]%side == 0 && rest%side == 0 {
				box[dim] = side
				try(dim+1, rest/side)
			}
		}
	}
	try(0, volume)
	return best
}

// surface returns the number of edges that leave the box through one face in each dimension.
func (t *cart) surface(box []int, volume int) int {
	edges := 0
	for i, side := range box {
		if side < t.dims[i] {
			edges += volume / side
		}
	}
	return edges
}
