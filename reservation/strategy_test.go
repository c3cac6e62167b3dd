package reservation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func peersWith(slots ...int) []PeerSlots {
	ps := make([]PeerSlots, len(slots))
	for i, s := range slots {
		ps[i].Slots = s
	}
	return ps
}

func TestAssign(t *testing.T) {
	cached := []PeerSlots{{Slots: 4}, {Slots: 4, Cached: 10}, {Slots: 4, Cached: 10}, {Slots: 4, Cached: 99}}
	tests := []struct {
		name     string
		strategy Strategy
		peers    []PeerSlots
		n, r     int
		want     string
		err      error
	}{
		{"spread over all peers", Spread, peersWith(4, 4, 4, 4), 2, 2, "[[0.0] [1.0] [0.1] [1.1]]", nil},
		{"spread in passes", Spread, peersWith(4, 1, 4), 3, 2, "[[0.0 1.0 2.0] [0.1] [1.1 2.1]]", nil},
		{"spread omits far peers", Spread, peersWith(1, 1, 1), 2, 1, "[[0.0] [1.0] []]", nil},
		{"concentrate fills up to n", Concentrate, peersWith(9, 9, 9), 3, 2, "[[0.0 1.0 2.0] [0.1 1.1 2.1] []]", nil},
		{"concentrate continues with the next replica", Concentrate, peersWith(2, 3, 3), 3, 2, "[[0.0 1.0] [2.0 0.1 1.1] [2.1]]", nil},
		{"peers without slots are skipped", Concentrate, peersWith(0, 1, -3, 1), 1, 2, "[[] [0.0] [] [0.1]]", nil},
		{"dataspread", DataSpread, cached, 2, 1, "[[] [1.0] [] [0.0]]", nil},
		{"dataconcentrate", DataConcentrate, cached, 4, 2, "[[] [0.1 1.1 2.1 3.1] [] [0.0 1.0 2.0 3.0]]", nil},
		{"fewer peers than replicas", Spread, peersWith(9, 9), 1, 3, "", errFewPeers},
		{"peers without slots do not count", Spread, peersWith(9, 0), 1, 2, "", errFewPeers},
		{"too few slots", Spread, peersWith(3, 2), 3, 2, "", errFewSlots},
		{"two peers of one machine", Spread, []PeerSlots{{Slots: 9, Machine: "m"}, {Slots: 9, Machine: "m"}}, 1, 2, "", errFewPeers},
		{"peers of a machine share its processes", Concentrate,
			[]PeerSlots{{Slots: 1, Machine: "m"}, {Slots: 2}, {Slots: 1, Machine: "m"}}, 2, 2, "[[0.0] [0.1 1.1] [1.0]]", nil},
		{"slots above n are unused", Concentrate, peersWith(99, 2), 3, 2, "", errFewSlots},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.strategy.Assign(tt.peers, tt.n, tt.r)
			if !errors.Is(err, tt.err) {
				t.Fatalf("Assign returned %v, want %v", err, tt.err)
			}
			if err == nil && fmt.Sprint(got) != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAssignRefusesInvalidArguments(t *testing.T) {
	for _, nr := range [][2]int{{0, 1}, {1, 0}, {-1, -1}, {1 << 40, 1 << 40}, {view.MaxProcesses, 2}} {
		if _, err := Spread.Assign(peersWith(9, 9), nr[0], nr[1]); err == nil {
			t.Errorf("n=%d r=%d was accepted", nr[0], nr[1])
		}
	}
}

// TestNoTwoReplicasOfARankOnOneMachine tries every small job on random peers, some of which share
// machines.
func TestNoTwoReplicasOfARankOnOneMachine(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for n := 1; n <= 9; n++ {
		for r := 1; r <= 4; r++ {
			for range 40 {
				peers := make([]PeerSlots, rnd.IntN(12))
				for i := range peers {
					peers[i] = PeerSlots{Slots: rnd.IntN(n + 3), Cached: rnd.Int64N(3)}
					if m := rnd.IntN(10); m < 5 {
						peers[i].Machine = fmt.Sprint(m)
						peers[i].Domain.Addresses = []string{fmt.Sprint(rnd.IntN(3))} // may also be the address of another machine
					}
				}
				for s := Spread; s <= DataConcentrate; s++ {
					if err := checkAssignment(s, peers, n, r); err != nil {
						t.Fatalf("seed %d: %v n=%d r=%d %v: %v", seed, s, n, r, peers, err)
					}
				}
			}
		}
	}
}

func checkAssignment(s Strategy, peers []PeerSlots, n, r int) error {
	usableSlots, ofMachine := 0, map[string]int{}
	for i, p := range peers {
		ofMachine[machineAt(peers, i)] += max(0, p.Slots)
	}
	for _, slots := range ofMachine {
		usableSlots += min(slots, n)
	}
	got, err := s.Assign(peers, n, r)
	if (err == nil) != (usableSlots >= n*r) {
		return fmt.Errorf("%d usable slots: assigned %v", usableSlots, err == nil)
	}
	if err != nil {
		return nil
	}
	var all []view.Process
	type place struct {
		machine string
		rank    int
	}
	taken := map[place]bool{}
	for i, ps := range got {
		for _, p := range ps {
			at := place{machineAt(peers, i), p.Rank}
			if taken[at] || len(ps) > max(0, peers[i].Slots) {
				return fmt.Errorf("peer %d got %v: %v", i, ps, got)
			}
			taken[at] = true
		}
		all = append(all, ps...)
	}
	slices.SortFunc(all, func(a, b view.Process) int { return (a.Rank-b.Rank)*r + a.Replica - b.Replica })
	if !slices.Equal(all, view.New(n, r).Processes()) {
		return fmt.Errorf("the placed processes are %v", all)
	}
	return nil
}

// machineAt returns the machine of a peer, or a unique name if it is unknown.
func machineAt(peers []PeerSlots, i int) string {
	if m := peers[i].Machine; m != "" {
		return "machine " + m
	}
	return fmt.Sprint("of peer ", i)
}

func TestStrategyNames(t *testing.T) {
	for s := Spread; s <= DataConcentrate; s++ {
		if got, err := ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("%v read as %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "Spread", "strategy 4"} {
		if _, err := ParseStrategy(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
