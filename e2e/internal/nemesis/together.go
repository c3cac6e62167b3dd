package nemesis

import (
	"slices"
	"time"
)

// TCP sends again after 0.2, 0.6, 1.4 and 3 s what was lost. So a machine that was unplugged
// for a second is heard of again after one and a half, and one that was not heard of for
// another reason just then, or whose packets are lost or late at that moment, may be silent
// for longer than is tolerated.
const wayBack = 1500 * time.Millisecond

// silences reports whether a strike of the kind has a machine silent for as long as it must
// be borne with.
func (k Kind) silences() bool { return k == Blink || k == PausePeer }

// hampers reports whether strikes of the kind make it take longer until a machine that was
// silent is heard again.
func (k Kind) hampers() bool { return k.silences() || slices.Contains([]Kind{Loss, Delay, Late}, k) }

// TooMuch returns those of some strikes that make a machine silent together with s for longer
// than is tolerated, or may: what they are aimed at may be failed. sameMachine says whether two
// strikes are aimed at one machine. s is the latest.
func (s Strike) TooMuch(before []Strike, sameMachine func(a, b Strike) bool) (silent []Strike) {
	for _, b := range before {
		if s.At > b.At+b.For+wayBack {
			continue
		}
		one := sameMachine(b, s)
		if s.Kind.silences() && b.Kind.hampers() && (one || !b.Kind.silences()) {
			silent = append(silent, s)
		}
		if b.Kind.silences() && s.Kind.hampers() && (one || !s.Kind.silences()) {
			silent = append(silent, b)
		}
	}
	return silent
}
