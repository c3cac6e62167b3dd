package reservation_test

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// Three peers with two slots each run two ranks with two replicas: spread out, or
// close together.
func ExampleStrategy_Assign() {
	peers := []reservation.PeerSlots{{Slots: 2}, {Slots: 2}, {Slots: 2}}
	for _, s := range []reservation.Strategy{reservation.Spread, reservation.Concentrate} {
		assignment, err := s.Assign(peers, 2, 2)
		fmt.Println(s, assignment, err)
	}
	// Output:
	// spread [[0.0 1.0] [0.1] [1.1]] <nil>
	// concentrate [[0.0 1.0] [0.1 1.1] []] <nil>
}
