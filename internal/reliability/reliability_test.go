package reliability

import (
	"math"
	"testing"
)

// TestJobFails uses the values of the P2P-MPI slides, which are truncated there (0.01 for 0.0198).
func TestJobFails(t *testing.T) {
	tests := []struct {
		n, r int
		f    float64
		want float64
	}{
		{8, 1, 0.05, 0.33658},
		{8, 2, 0.05, 0.01983},
		{50, 1, 0.05, 0.92306},
		{50, 2, 0.05, 0.11764},
		{100, 1, 0.05, 0.99408},
		{100, 2, 0.05, 0.22144},
		{2, 2, 0.05, 0.00499}, // 2f² − f⁴
		{3, 2, 0, 0},
		{3, 2, 1, 1},
	}
	for _, tt := range tests {
		if got := JobFails(tt.n, tt.r, tt.f); math.Abs(got-tt.want) > 1e-5 {
			t.Errorf("JobFails(%d, %d, %v) = %.5f, want %.5f", tt.n, tt.r, tt.f, got, tt.want)
		}
	}
}

func TestJobFailsKeepsTinyProbabilities(t *testing.T) {
	if got, want := JobFails(10, 10, 0.01), 1e-19; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("got %g, want %g", got, want)
	}
}
