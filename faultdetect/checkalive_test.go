package faultdetect

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestCheckAlive(t *testing.T) {
	const s = time.Second
	p, q := view.Process{Rank: 0}, view.Process{Rank: 1, Replica: 1}
	c := NewCheckAlive(s, DefaultHang)
	c.Watch(p)
	c.Watch(q)
	steps := []struct {
		name      string
		now       time.Duration
		answers   []view.Process // after the tick
		ask, hung []view.Process
	}{
		{"first", 1 * s, []view.Process{p, q}, []view.Process{p, q}, nil},
		{"q falls silent", 2 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"this peer is stopped for a minute: two periods of it count", 62 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"within the hang", 63 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"q hangs", 64 * s, []view.Process{p, q}, []view.Process{p}, []view.Process{q}},
		{"q is told of once", 65 * s, []view.Process{p}, []view.Process{p}, nil},
	}
	for _, st := range steps {
		ask, hung := c.Tick(st.now)
		if !slices.Equal(ask, st.ask) || !slices.Equal(hung, st.hung) {
			t.Errorf("%s: ask %v, hung %v; want %v, %v", st.name, ask, hung, st.ask, st.hung)
		}
		for _, a := range st.answers {
			c.Answered(a)
		}
	}
	c.Forget(p)
	if ask, hung := c.Tick(80 * s); len(ask)+len(hung) != 0 {
		t.Errorf("after Forget: ask %v, hung %v", ask, hung)
	}
}
