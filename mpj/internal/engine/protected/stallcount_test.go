package protected

import "testing"

// TestStallReportsBackOff checks the times at which a wait for an outcome is reported: after 20
// ticks or four times the usual wait, and then after twice as long each time.
func TestStallReportsBackOff(t *testing.T) {
	reports := func(s *stall, ticks int) (at []int) {
		for i := 1; i <= ticks; i++ {
			if s.tick() {
				at = append(at, i)
			}
		}
		return at
	}
	want := func(what string, got []int, want ...int) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: reported at ticks %v, want %v", what, got, want)
		}
		for i := range want {
			if d := got[i] - want[i]; d < -want[i]/10 || d > want[i]/10 {
				t.Errorf("%s: reported at ticks %v, want about %v", what, got, want)
			}
		}
	}
	var s stall
	want("at first", reports(&s, 100), 20, 40, 80)
	s = stall{}
	for range 100 {
		want("an outcome that takes the usual 30 ticks", reports(&s, 0))
		for range 30 {
			s.tick()
		}
		s.end()
	}
	want("where outcomes take 30 ticks", reports(&s, 300), 120, 240)
	for range 100 {
		s.end()
	}
	want("where outcomes are fast again", reports(&s, 50), 20, 40)
}
