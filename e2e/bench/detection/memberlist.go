package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// memberlistTimes measures hashicorp/memberlist with its LAN defaults, at real
// time: members of one process, on loopback, of which one is shut down.
func memberlistTimes(options) ([][]string, error) {
	rows := [][]string{{"n", "memberlist: min", "mean", "max", "σ"}}
	for _, n := range []int{8, 32, 64, 128} {
		times, err := memberlistGroup(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, append([]string{fmt.Sprint(n)}, figures(times)...))
	}
	return rows, nil
}

// witness hears from memberlist who has left.
type witness struct {
	mu   sync.Mutex
	lost string
	when []time.Time
}

func (w *witness) NotifyJoin(*memberlist.Node)   {}
func (w *witness) NotifyUpdate(*memberlist.Node) {}
func (w *witness) NotifyLeave(n *memberlist.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.Name == w.lost {
		w.when = append(w.when, time.Now())
	}
}

func (w *witness) knowing() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.when
}

// met returns when all members know all. memberlist tells that to nobody, so it is
// asked.
func met(members []*memberlist.Memberlist) error {
	limit := time.Now().Add(time.Minute)
	for _, m := range members {
		for m.NumMembers() < len(members) {
			if time.Now().After(limit) {
				return fmt.Errorf("%s knows %d of %d members after a minute", m.LocalNode().Name, m.NumMembers(), len(members))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

func memberlistGroup(n int) (times []float64, err error) {
	w := &witness{lost: "member0"}
	var members []*memberlist.Memberlist
	defer func() {
		for _, m := range members {
			_ = m.Shutdown()
		}
	}()
	for i := range n {
		c := memberlist.DefaultLANConfig()
		c.Name, c.LogOutput = fmt.Sprintf("member%d", i), io.Discard
		c.BindAddr, c.BindPort = "127.0.0.1", 0
		if i > 0 {
			c.Events = w
		}
		m, err := memberlist.Create(c)
		if err != nil {
			return nil, fmt.Errorf("create member %d of %d: %w", i, n, err)
		}
		members = append(members, m)
		if i > 0 {
			if _, err := m.Join([]string{members[0].LocalNode().Address()}); err != nil {
				return nil, fmt.Errorf("join member %d of %d: %w", i, n, err)
			}
		}
	}
	if err := met(members); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := members[0].Shutdown(); err != nil {
		return nil, err
	}
	for limit := begun.Add(time.Minute); len(w.knowing()) < n-1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			return nil, fmt.Errorf("%d of %d members know after a minute", len(w.knowing()), n-1)
		}
	}
	for _, t := range w.knowing() {
		times = append(times, t.Sub(begun).Seconds())
	}
	return times, nil
}
