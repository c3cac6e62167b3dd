package core

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// A Place is the location of a rank. Ranks with the same machine share memory; ranks with the same
// cluster are near each other.
type Place struct{ Machine, Cluster int }

// SetPlaces sets the places of all ranks of world, by rank. nil means that all are on one machine.
// The program must not have used world yet.
func SetPlaces(world *Comm, places []Place) {
	world.process.places, world.locality = places, locality{}
}

// SetAlgorithms selects algorithms for the collectives of all communicators of the process of world;
// nil selects none. If invalid is not nil, every collective returns it as an error. The program must
// not have used world yet.
func SetAlgorithms(world *Comm, forced *collective.Forced, invalid error) {
	world.process.forced, world.process.unforced = forced, invalid
}

// PlaceOf returns the place of a rank of c.
func PlaceOf(c *Comm, rank int) Place {
	if c.process.places == nil {
		return Place{}
	}
	return c.process.places[c.WorldRank(rank)]
}

// A locality contains the machines and clusters of the ranks of a communicator.
type locality struct {
	once   sync.Once
	levels *collective.Levels
}

// teamOf returns the ranks of c for an operation whose messages use the context of slot.
func teamOf(c *Comm, slot uint32) collective.Team {
	if c.process.places != nil {
		c.locality.once.Do(func() {
			c.locality.levels = collective.NewLevels(c.size, func(rank int) (machine, cluster int) {
				p := PlaceOf(c, rank)
				return p.Machine, p.Cluster
			})
		})
	}
	return collective.Team{
		Engine: c.engine, Context: c.Context(slot), World: c.ranks, Rank: c.rank, Size: c.size,
		Levels: c.locality.levels, Forced: c.process.forced, Failures: &c.failures,
	}
}
