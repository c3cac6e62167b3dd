package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCartRanksAndCoordsAreInverse(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		g := &cart{}
		for range random.IntN(5) {
			g.dims, g.periods = append(g.dims, 1+random.IntN(4)), append(g.periods, random.IntN(2) == 0)
		}
		for rank := range gridSize(g.dims) {
			coords := g.coords(rank)
			if got := g.rank(coords); got != rank {
				t.Fatalf("seed %d: %v: rank %d is at %v, where rank %d is", seed, g, rank, coords, got)
			}
			for dim := range g.dims {
				disp := random.IntN(11) - 5
				at := coords[dim] + disp
				want := ProcNull
				if at >= 0 && at < g.dims[dim] || g.periods[dim] {
					moved := slices.Clone(coords)
					moved[dim] = ((at % g.dims[dim]) + g.dims[dim]) % g.dims[dim]
					want = g.rank(moved)
				}
				if got := g.shift(rank, dim, disp); got != want {
					t.Fatalf("seed %d: %v: %d from %v in dimension %d: got %d, want %d", seed, g, disp, coords, dim, got, want)
				}
			}
		}
	}
}

// TestReorderPutsNeighboursOnOneMachine distributes the ranks at random over machines with 4 ranks
// each. It checks that in a torus of 4 x 4 ranks, every rank has 2 of its 4 neighbours on its own
// machine.
func TestReorderPutsNeighboursOnOneMachine(t *testing.T) {
	inWorld(t, 16, func(world *Comm) error {
		places := make([]Place, 16)
		for i := range places {
			places[i].Machine = i * 7 % 16 / 4
		}
		SetPlaces(world, places)
		g, torus := new(Comm), []bool{true, true}
		if member, err := CartCreate(world, g, "CartCreate", []int{4, 4}, torus, true); err != nil || !member {
			return unexpected(err, "got member %t", member)
		}
		near := 0
		_, out := g.topology.edges(g.rank)
		for _, e := range out {
			if PlaceOf(g, e.rank) == PlaceOf(g, g.rank) {
				near++
			}
		}
		mapped, err := CartMap(world, []int{4, 4}, torus)
		if err != nil || near != 2 || mapped != g.rank {
			return unexpected(err, "got %d neighbours on this machine, want 2, and rank %d from CartMap, want %d", near, mapped, g.rank)
		}
		return ring(g, g.Group().Members...)
	})
}
