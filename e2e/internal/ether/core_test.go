package ether

import (
	"slices"
	"testing"
	"time"
)

// frame returns a frame from one machine to another; machine 255 is the broadcast address.
func frame(to, from byte) []byte {
	f := make([]byte, 64)
	for i := range 6 {
		f[i], f[6+i] = to, from
	}
	return f
}

// introduced returns a core of three ports that knows the addresses of all machines.
func introduced() *core {
	c := newCore(1)
	c.ports = 3
	for port := range 3 {
		c.forward(port, frame(255, byte(port+1)))
	}
	return c
}

func TestFramesReachTheirAddress(t *testing.T) {
	tests := []struct {
		name  string
		frame []byte
		want  []delivery
	}{
		{"known", frame(2, 1), []delivery{{1, 0}}},
		{"broadcast", frame(255, 1), []delivery{{1, 0}, {2, 0}}},
		{"unknown", frame(9, 1), []delivery{{1, 0}, {2, 0}}},
		{"the sender itself", frame(1, 1), nil},
		{"cut short", frame(2, 1)[:13], nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := introduced().forward(0, tt.frame); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestLinks sends 10,000 frames in each direction between two ports. The Link in one direction has been changed.
func TestLinks(t *testing.T) {
	const frames = 10_000
	tests := []struct {
		name            string
		link            Link
		arrive, late    int // approximate numbers of the frames in that direction
		delay, lateness time.Duration
	}{
		{"untouched", Link{}, frames, 0, 0, 0},
		{"cut", Link{Cut: true}, 0, 0, 0, 0},
		{"loss", Link{Loss: 0.05}, 0.95 * frames, 0, 0, 0},
		{"delay", Link{Delay: time.Second}, frames, 0, time.Second, 0},
		{"out of order", Link{Delay: time.Second, Late: 0.2, By: time.Minute}, frames, 0.2 * frames, time.Second, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := introduced()
			c.set(0, 1, tt.link)
			arrived, late := 0, 0
			for range frames {
				for _, d := range c.forward(0, frame(2, 1)) {
					arrived++
					switch d.after {
					case tt.delay + tt.lateness:
						late++
					case tt.delay:
					default:
						t.Fatalf("unexpected delay %v", d.after)
					}
				}
				if back := c.forward(1, frame(1, 2)); !slices.Equal(back, []delivery{{0, 0}}) {
					t.Fatalf("in the other direction: got %v", back)
				}
			}
			if tt.lateness == 0 {
				late = 0
			}
			if far(arrived, tt.arrive) || far(late, tt.late) {
				t.Errorf("%d of %d arrive and %d are late, want about %d and %d", arrived, frames, late, tt.arrive, tt.late)
			}
			c.set(0, 1, Link{})
			if got := c.forward(0, frame(2, 1)); !slices.Equal(got, []delivery{{1, 0}}) || len(c.links) > 0 {
				t.Errorf("after the repair: %v", got)
			}
		})
	}
}

// far reports whether a count of random events deviates from the expected one by more than ten
// standard deviations of 10,000 events.
func far(got, want int) bool {
	if want == 0 || want == 10_000 {
		return got != want
	}
	return max(got-want, want-got) > 500
}
