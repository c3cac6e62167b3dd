package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// memberlistTimes measures hashicorp/memberlist with its LAN defaults, at real time. All members
// are in one process, on loopback, and four of them are shut down, one after the other.
func memberlistTimes(options) ([][]string, error) {
	rows := [][]string{{"n", "memberlist: min", "mean", "max", "σ"}}
	for _, n := range []int{8, 16, 32, 64, 128, 192} {
		times, err := memberlistGroup(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, append([]string{fmt.Sprint(n)}, figures(times)...))
	}
	return rows, nil
}

// A witness receives memberlist's notifications of members that have left.
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

// expect makes the witness record the end of a member from now on.
func (w *witness) expect(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.when = name, nil
}

// met returns when all members know all others. memberlist has no notification for that, so met
// polls.
func met(members []*memberlist.Memberlist) error {
	limit := time.Now().Add(5 * time.Minute) // in large groups, members exchange their full state only every two minutes
	for _, m := range members {
		for m.NumMembers() < len(members) {
			if time.Now().After(limit) {
				return fmt.Errorf("%s knows %d of %d members after five minutes", m.LocalNode().Name, m.NumMembers(), len(members))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

func memberlistGroup(n int) (times []float64, err error) {
	w := &witness{}
	var members []*memberlist.Memberlist
	defer func() {
		for _, m := range members {
			_ = m.Shutdown()
		}
	}()
	for i := range n {
		c := memberlist.DefaultLANConfig()
		c.Name, c.LogOutput = fmt.Sprintf("member%d", i), io.Discard
		c.BindAddr, c.BindPort, c.Events = "127.0.0.1", 0, w
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
	for lost := range realRounds {
		more, err := memberlistLoses(members[lost], w, n-1-lost)
		if err != nil {
			return nil, err
		}
		times = append(times, more...)
	}
	return times, nil
}

// memberlistLoses shuts a member down. For each of the survivors, it returns the time in seconds
// until the survivor knew.
func memberlistLoses(m *memberlist.Memberlist, w *witness, survivors int) (times []float64, err error) {
	w.expect(m.LocalNode().Name)
	begun := time.Now()
	if err := m.Shutdown(); err != nil {
		return nil, err
	}
	for limit := begun.Add(time.Minute); len(w.knowing()) < survivors; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			return nil, fmt.Errorf("%d of %d members noticed the loss within a minute", len(w.knowing()), survivors)
		}
	}
	for _, t := range w.knowing() {
		times = append(times, t.Sub(begun).Seconds())
	}
	return times, nil
}
