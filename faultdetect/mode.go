package faultdetect

import (
	"fmt"
	"time"
)

// DefaultGroupHang is the default tolerated hang of a job's peers. If packets are lost, or a cable is
// unplugged for a second, TCP is silent for up to one and a half seconds, whatever the period.
const DefaultGroupHang = 2 * time.Second

// Mode determines when a member becomes suspect.
type Mode byte

// The modes. All members of a group must use the same mode.
const (
	Fast   Mode = iota // a late table, or silence as in Gossip
	Gossip             // no news for as long as the scheme of targets may take, as in P2P-MPI
)

var modes = [...]string{Fast: "fast", Gossip: "gossip"}

// String returns the mode's name in the configuration.
func (m Mode) String() string { return name(modes[:], "mode", byte(m)) }

// name returns names[i], or kind and i if there is no such name.
func name(names []string, kind string, i byte) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s %d", kind, i)
}

// ParseMode parses a mode's name.
func ParseMode(name string) (Mode, error) {
	for m, s := range modes {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("detector %q: want fast or gossip", name)
}
