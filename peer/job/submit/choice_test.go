package submit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/reliability"
)

var linux = Platform{"linux", "amd64"}

// alike returns peers with the given number of slots that fail within an hour with probability
// 0.05: they end once in 19.5 hours.
func alike(peers, slots int) []Candidate {
	const day = 24 * time.Hour
	h := reliability.History{Up: time.Duration(-float64(20*time.Hour)/math.Log(0.95)) - day, Ends: 19}
	out := make([]Candidate, peers)
	for i := range out {
		out[i] = Candidate{Platform: linux, Slots: slots, History: h}
	}
	return out
}

// on sets the machine of the candidates.
func on(machine string, candidates []Candidate) []Candidate {
	for i := range candidates {
		candidates[i].Machine = machine
	}
	return candidates
}

func TestChooseReplicas(t *testing.T) {
	others := append(alike(12, 8), Candidate{Platform: Platform{"plan9", "arm"}, Slots: 100, History: reliability.History{Ends: 1000}})
	liar := append(alike(99, 1), Candidate{Platform: linux, Slots: 1 << 16, History: reliability.History{Ends: math.MaxInt}})
	tests := []struct {
		name       string
		n          int
		wanted     float64
		candidates []Candidate
		want       int    // number of replicas; 0: none suffices
		says       string // part of the reason or the error
	}{
		{"one will do", 8, 0.6, alike(12, 8), 1, "with 1 replica each, 8 ranks succeed with probability 0.663"},
		{"two", 8, 0.98, alike(12, 8), 2, "0.980"},
		{"three", 8, 0.99, alike(12, 8), 3, "of 12 peers found one fails within 1h0m0s with probability 0.05"},
		{"no room for three", 8, 0.99, alike(2, 100), 0, "--success 0.99 requires more replicas"},
		{"slots of a peer beyond n do not count", 8, 0.98, alike(1, 100), 0, "with 1 replica each"},
		{"nobody", 8, 0.5, nil, 0, "found 0 of the 8 slots"},
		{"too few", 8, 0.5, alike(7, 1), 0, "found 7 of the 8 slots"},
		{"peers that cannot run it do not count", 8, 0.98, others, 2, "of 12 peers"},
		{"three peers on one machine", 1, 0.99, on("a", alike(3, 4)), 0, "with 1 replica each, 1 rank succeeds with probability 0.950, since of 3 peers found on 1 machine one fails"},
		{"peers on two machines", 4, 0.98, append(on("a", alike(3, 4)), on("b", alike(3, 4))...), 2, "of 6 peers found on 2 machines"},
		{"peers on two machines have no room for three", 4, 0.9999, append(on("a", alike(3, 4)), on("b", alike(3, 4))...), 0, "requires more replicas"},
		{"peers of a machine share its slots", 4, 0.5, on("a", alike(3, 1)), 0, "found 3 of the 4 slots"},
		{"peers that name no machine are on one each", 1, 0.99, alike(3, 4), 2, "of 3 peers found one fails"},
		{"one that makes itself out to be the worst counts for its slot", 1, 0.99, liar, 2, "probability 0.06"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ChooseReplicas(tt.n, tt.wanted, time.Hour, []Platform{linux}, tt.candidates)
			text := c.Event().Text
			if tt.want == 0 && err != nil {
				text, c.Replicas = err.Error(), 0
			}
			if c.Replicas != tt.want || !strings.Contains(text, tt.says) {
				t.Errorf("got %d, %s; want %d, %q", c.Replicas, text, tt.want, tt.says)
			}
		})
	}
}
