package faultdetect

import (
	"slices"
	"testing"
)

func TestProbeRequestsAreAnsweredOnce(t *testing.T) {
	var ps probeRequests
	for _, q := range []probeRequest{{5, 1, 3}, {5, 2, 3}, {5, 1, 4}, {6, 1, 2}} {
		if !ps.add(q) {
			t.Fatalf("the request %+v was refused", q)
		}
	}
	ps.expire(2)
	if got := ps.take(6); got != nil {
		t.Errorf("the members that asked about 6 are %v, want none after the request expired", got)
	}
	if got, want := ps.take(5), []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("the members that asked about 5 are %v, want %v", got, want)
	}
	if got := ps.take(5); got != nil {
		t.Errorf("the members that asked about 5 were returned again: %v", got)
	}
}

func TestAccusationIsNotRepeatedWithinItsReach(t *testing.T) {
	var as accusations
	for _, tt := range []struct {
		name string
		a    sentAccusation
		want bool
	}{
		{"new", sentAccusation{5, Forward, 3, 2}, true},
		{"same", sentAccusation{5, Forward, 3, 2}, false},
		{"smaller reach", sentAccusation{5, Forward, 1, 2}, false},
		{"larger reach", sentAccusation{5, Forward, 7, 2}, true},
		{"other tree", sentAccusation{5, Backward, 3, 2}, true},
	} {
		if got := as.add(tt.a); got != tt.want {
			t.Errorf("%s: added %v, want %v", tt.name, got, tt.want)
		}
	}
	as.expire(2)
	if !as.add(sentAccusation{5, Forward, 3, 4}) {
		t.Error("an expired accusation is not repeated")
	}
}
