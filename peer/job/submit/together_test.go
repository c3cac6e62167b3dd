package submit

import (
	"slices"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

func TestOnlySharedMemoryNeedsOnePeer(t *testing.T) {
	tests := []struct {
		n        int
		channels []string
		want     bool
	}{
		{4, []string{"shm"}, true},
		{1, []string{"shm"}, false},
		{4, []string{"shm", "tcp"}, false},
		{4, []string{"tcp"}, false},
		{4, nil, false},
	}
	for _, tt := range tests {
		if got := (Request{N: tt.n, R: 1, Channels: tt.channels}).together(); got != tt.want {
			t.Errorf("n=%d, %v: got %v", tt.n, tt.channels, got)
		}
	}
}

// TestPeersAreAskedOneAtATime: one peer is asked at a time, those with enough free slots first.
func TestPeersAreAskedOneAtATime(t *testing.T) {
	candidates := []reservation.Candidate{
		{Peer: "small", Slots: 3, Total: 3}, {Peer: "busy", Slots: 0, Total: 8}, {Peer: "near", Slots: 4, Total: 4}, {Peer: "far", Slots: 9, Total: 9},
	}
	var got []p2ppeer.ID
	for turn := range 4 {
		for _, c := range onePeer(candidates, 4, turn) {
			got = append(got, c.Peer)
		}
	}
	if want := []p2ppeer.ID{"near", "far", "busy", "near"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := onePeer(candidates, 10, 0); got != nil {
		t.Errorf("no peer has 10 slots: got %v", got)
	}
}

// TestReplicasCannotShareMemory: replicas of a rank are never on one peer, so they cannot share
// memory.
func TestReplicasCannotShareMemory(t *testing.T) {
	err := Request{N: 1, R: 2, Channels: []string{"shm"}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "--channels shm: replicas of a rank run on different peers") {
		t.Errorf("got %v", err)
	}
}
