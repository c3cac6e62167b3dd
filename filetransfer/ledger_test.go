package filetransfer

import (
	"slices"
	"testing"
	"time"
)

var one, two = holder{"one", 1}, holder{"two", 2}

func TestLedgerGrantsAUnitToOnePeerAtATime(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name string
		then func(l *ledger) // event after unit 3 was given to peer one at 10 s
		at   time.Duration   // time when peer two requests unit 3
		want bool
	}{
		{"at once", func(*ledger) {}, 10 * second, false},
		{"while it is being sent", func(l *ledger) { l.sent(one, 30*second) }, 30*second + linkTimeout - 1, false},
		{"when the link has been silent", func(l *ledger) { l.sent(one, 30*second) }, 30*second + linkTimeout, true},
		{"when the link has ended", func(l *ledger) { l.gone(one) }, 11 * second, true},
		{"when it has just arrived", func(l *ledger) { l.got(3, one, 12*second) }, 12 * second, false},
		{"within twice the time that it took", func(l *ledger) { l.got(3, one, 12*second) }, 16*second - 1, false},
		{"after twice the time that it took", func(l *ledger) { l.got(3, one, 12*second) }, 16 * second, true},
		{"soon after it was quick", func(l *ledger) { l.got(3, one, 10*second) }, 10*second + minLease, true},
		{"long after it was slow", func(l *ledger) { l.got(3, one, 100*second) }, 100*second + maxLease, true},
		{"when another peer announces it", func(l *ledger) { l.got(3, two, 10*second) }, 10*second + minLease, false},
		{"when it arrived and its link has ended", func(l *ledger) { l.got(3, one, 12*second); l.gone(one) }, 13 * second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLedger()
			for _, how := range []string{"while it was free", "again to the same peer"} {
				if !l.grant(3, one, 10*second) {
					t.Fatalf("a unit was not granted %s", how)
				}
			}
			tt.then(l)
			if got, want := l.taken(8, tt.at).has(3), !tt.want; got != want {
				t.Errorf("unit taken: %v, want %v", got, want)
			}
			if got := l.grant(3, two, tt.at); got != tt.want {
				t.Errorf("the unit was granted: %v, want %v", got, tt.want)
			}
			if !l.grant(4, two, tt.at) {
				t.Error("another unit is not free")
			}
		})
	}
}

// The neighbour relation is symmetric and small, and connects all peers.
func TestNeighbours(t *testing.T) {
	for n := 1; n < 300; n++ {
		reached := []int{0}
		seen := map[int]bool{0: true}
		for len(reached) > 0 {
			i := reached[0]
			reached = reached[1:]
			js := Neighbours(i, n)
			if len(js) > MaxMembers {
				t.Fatalf("%d of %d has %d neighbours", i, n, len(js))
			}
			slices.Sort(js)
			if len(slices.Compact(slices.Clone(js))) != len(js) || slices.Contains(js, i) {
				t.Fatalf("%d of %d has neighbours %v", i, n, js)
			}
			for _, j := range js {
				if !slices.Contains(Neighbours(j, n), i) {
					t.Fatalf("peer %d of %d has the neighbour %d, which does not have the neighbour %[1]d", i, n, j)
				}
				if !seen[j] {
					seen[j] = true
					reached = append(reached, j)
				}
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d are connected", len(seen), n)
		}
	}
	for _, n := range []int{1 << 10, 1 << 16} {
		if got := len(Neighbours(5, n)); got > MaxMembers {
			t.Errorf("%d neighbours of %d", got, n)
		}
	}
}

// A peer that requests every unit repeatedly and confirms none reserves only few units, over however many
// links, and not for long.
func TestLedgerLimitsAGreedyPeer(t *testing.T) {
	const units = 32
	l := newLedger()
	var now time.Duration
	for ; now <= confirmTimeout+10*time.Second; now += 10 * time.Second {
		for u := range units {
			link := holder{"hog", uint64(u)}
			if !l.grant(u, link, now) {
				t.Fatalf("unit %d is taken, although no other peer has requested it", u)
			}
			l.delivered(u, link, now)
			l.sent(link, now+9*time.Second)
		}
		if got := l.taken(units, now).count(); got > maxBooked {
			t.Fatalf("%d units are granted to the greedy peer at %v", got, now)
		}
	}
	if l.taken(units, now).has(0) {
		t.Error("the first unit is still granted to the greedy peer")
	}
}

// A unit that was sent for a request not marked fresh is not sent to other peers as fresh.
func TestLedgerRecordsUrgentUnits(t *testing.T) {
	l := newLedger()
	l.book(3, one, 0)
	if l.grant(3, two, 1) {
		t.Error("another link is granted the unit at once")
	}
	l.book(3, two, 1)
	if l.gone(one); !l.grant(3, two, 2) {
		t.Error("the unit is not free after its link has ended")
	}
}
