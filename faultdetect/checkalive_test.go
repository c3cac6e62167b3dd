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
		answers   []view.Process // answers after the tick
		ask, hung []view.Process
	}{
		{"first", 1 * s, []view.Process{p, q}, []view.Process{p, q}, nil},
		{"q falls silent", 2 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"this peer is stopped for a minute: a period and a quarter count", 62 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"within the hang", 63 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"still within the hang", 64 * s, []view.Process{p}, []view.Process{p, q}, nil},
		{"q hangs", 65 * s, []view.Process{p, q}, []view.Process{p}, []view.Process{q}},
		{"q is reported once", 66 * s, []view.Process{p}, []view.Process{p}, nil},
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

// TestExcusedTimeDoesNotCount: of two processes that do not answer, one waits for a processor meanwhile.
// That process is found hung only after it has had time to answer.
func TestExcusedTimeDoesNotCount(t *testing.T) {
	const s = time.Second
	p, q := view.Process{Rank: 0}, view.Process{Rank: 1}
	c := NewCheckAlive(s, DefaultHang)
	c.Watch(p)
	c.Watch(q)
	found := make(map[view.Process]time.Duration)
	for now := s; now <= 30*s; now += s {
		late := c.Late()
		if want := now > 2*s && now <= 5*s; slices.Contains(late, q) != want { // later it is no longer monitored
			t.Errorf("at %v: late %v", now, late)
		}
		if slices.Contains(late, p) && now <= 20*s {
			c.Excuse(p, s)
		}
		_, hung := c.Tick(now)
		for _, h := range hung {
			found[h] = now
		}
	}
	if found[q] != 5*s || found[p] != 23*s {
		t.Errorf("got %v, want q after 5 s, and p 3 s after the last excuse", found)
	}
	c.Watch(p)
	c.Excuse(p, time.Hour)
	if c.Tick(31 * s); len(c.Late()) != 0 {
		t.Error("an excuse extends into the future")
	}
}

// TestProcessIsLateBeforeItHangs: a peer that lacks a processor ticks too seldom, and must find a process late, which
// may lack a processor as well, before the process is hung.
func TestProcessIsLateBeforeItHangs(t *testing.T) {
	const period = 500 * time.Millisecond
	p := view.Process{}
	for _, interval := range []time.Duration{period, period + period/2, 2 * period, 10 * period} {
		c := NewCheckAlive(period, 5*period)
		c.Watch(p)
		late := 0
		for now := interval; ; now += interval {
			if slices.Contains(c.Late(), p) {
				late++
			}
			if _, hung := c.Tick(now); len(hung) > 0 {
				break
			}
		}
		if late < 2 {
			t.Errorf("with a tick every %v, the process was late at %d ticks, the last included, want 2 or more", interval, late)
		}
	}
}
