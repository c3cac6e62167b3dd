package connected

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	checkEvery = time.Second
	sleepGap   = 15 * time.Second // delay between two checks that indicates a sleep
)

// A moveDetector detects that this machine has moved, by comparing successive observations. A machine moves when
// its addresses change, a cable is plugged in, or it wakes from sleep. A moveDetector is pure.
type moveDetector struct {
	last   time.Time // wall-clock time; the monotonic clock may stop during sleep
	usable []string  // interfaces that are up, each with its addresses
}

// observe reports why this machine seems to have moved since the last call, or "".
func (l *moveDetector) observe(now time.Time, usable []string) (why string) {
	now = now.Round(0) // strips the monotonic clock
	switch {
	case l.last.IsZero():
	case now.Sub(l.last) > sleepGap:
		why = "it was asleep"
	case !slices.Equal(usable, l.usable):
		why = "its addresses have changed"
	}
	l.last, l.usable = now, usable
	return why
}

// Interfaces lists the interfaces that are up, each with its addresses, and all addresses of the machine.
// Loopback interfaces are left out of usable, but their addresses are in all.
func Interfaces() (usable []string, all []netip.Addr, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, nil, err
		}
		texts := []string{i.Name}
		for _, a := range addrs {
			texts = append(texts, a.String())
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, prefix.Addr().Unmap())
			}
		}
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagLoopback == 0 && len(addrs) > 0 {
			slices.Sort(texts[1:])
			usable = append(usable, strings.Join(texts, " "))
		}
	}
	slices.Sort(usable)
	return usable, all, nil
}
