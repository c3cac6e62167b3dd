package faultdetect

import (
	"fmt"
	"time"
)

// DefaultGroupHang is for how long the peers of a job bear with one that hangs.
// When packets are lost, or a cable is out for a second, TCP is silent for up to
// one and a half, whatever the period.
const DefaultGroupHang = 2 * time.Second

// Mode says what makes a suspect.
type Mode byte

// The modes. All members of a group must be in the same.
const (
	Fast   Mode = iota // a table that is missing on time; and silence, as in Gossip
	Gossip             // silence for as long as the scheme of targets takes to bring news: the seed's
)

var modes = [...]string{Fast: "fast", Gossip: "gossip"}

// String is the mode's name in the configuration.
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("mode %d", byte(m))
}

// ParseMode reads a mode's name.
func ParseMode(name string) (Mode, error) {
	for m, s := range modes {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("detector %q: want fast or gossip", name)
}
