package engine

import "testing"

// A quietBell never rings.
type quietBell struct{}

func (quietBell) Arm()    {}
func (quietBell) Sleep()  {}
func (quietBell) Disarm() {}

// TestLeaveHandsPendingTransfersToThePump checks when a call that returns to the program makes the
// pump watch the rings and recalls lent channels.
func TestLeaveHandsPendingTransfersToThePump(t *testing.T) {
	for _, tt := range []struct {
		name           string
		pending        poller
		watch, recalls bool
	}{
		{"nothing", poller{}, false, false},
		{"payload", poller{bodies: 1}, true, true},
		{"full ring", poller{pushing: []*Outlet{{}}}, true, true},
		{"sleeping goroutine", poller{sleepers: []*Waiter{{}}}, true, true},
		{"payload, and a goroutine spins", poller{bodies: 1, spinning: true}, false, true},
	} {
		p, lent := tt.pending, &inlet{loan: &loan{lent: true, recall: make(chan struct{}, 1)}}
		p.bell, p.kick, p.lent = quietBell{}, make(chan struct{}, 1), []*inlet{lent}
		p.leave()
		if p.watching != tt.watch || len(p.kick) > 0 != tt.watch {
			t.Errorf("%s: the pump watches %v, signaled %v, want %v", tt.name, p.watching, len(p.kick) > 0, tt.watch)
		}
		if recalled := len(lent.loan.recall) > 0; recalled != tt.recalls {
			t.Errorf("%s: recalled the lent channel %v, want %v", tt.name, recalled, tt.recalls)
		}
	}
}
