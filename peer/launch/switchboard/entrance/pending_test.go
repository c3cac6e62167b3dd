package entrance

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// from is a connection from an address.
type from struct {
	net.Conn
	at     string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.at)) }
func (f *from) Close() error         { f.closed = true; return nil }

// TestOriginsShareConnectionsFairly makes many connections from some origins, and single ones from others.
func TestOriginsShareConnectionsFairly(t *testing.T) {
	tests := map[string]struct {
		flood, lone []string // in turns; each lone one once, in the middle
	}{
		"one address":              {[]string{"11.0.0.1:1"}, []string{"11.0.0.2:1", "[2a00::1]:1"}},
		"one, through both stacks": {[]string{"11.0.0.1:1", "[::ffff:11.0.0.1]:1"}, []string{"11.0.0.2:1"}},
		"three addresses":          {[]string{"11.0.0.1:1", "11.0.0.3:1", "11.0.0.4:1"}, []string{"11.0.0.2:1"}},
		"a network of IPv6":        {[]string{"[2a00:0:0:101::1]:1", "[2a00:0:0:102::2]:1"}, []string{"[2a00:0:0:201::1]:1", "11.0.0.2:1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s pendingConns
			var lone []*from
			for i := range 3 * maxPending {
				s.add(&from{at: test.flood[i%len(test.flood)]})
				if i == maxPending {
					for _, at := range test.lone {
						lone = append(lone, &from{at: at})
						s.add(lone[len(lone)-1])
					}
				}
			}
			for _, c := range lone {
				if c.closed {
					t.Errorf("%s was closed", c.at)
				}
				s.remove(c)
			}
			if want := maxPending - len(lone); len(s) != want {
				t.Errorf("%d are left, want %d", len(s), want)
			}
		})
	}
}

// TestOldestConnectionOfAnOriginIsClosedFirst checks that the oldest connection of an origin is closed first.
func TestOldestConnectionOfAnOriginIsClosedFirst(t *testing.T) {
	var s pendingConns
	var all []*from
	for i := range 2 * maxPending {
		all = append(all, &from{at: fmt.Sprintf("11.0.0.1:%d", i+1)})
		s.add(all[i])
	}
	for i, c := range all {
		if want := i < maxPending; c.closed != want {
			t.Errorf("connection %d: closed is %v, want %v", i+1, c.closed, want)
		}
	}
}
