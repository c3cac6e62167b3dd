package nemesis

import (
	"slices"
	"time"
)

// returnTime bounds how long a machine may stay silent after a short fault has ended. TCP retransmits lost
// packets after 0.2, 0.6, 1.4 and 3 s. A machine that was unplugged for a second is therefore heard again after
// one and a half seconds in all. If another fault hits the machine in this time, or its packets are lost or
// late, the silence may be longer than is tolerated.
const returnTime = 1500 * time.Millisecond

// silences reports whether a strike of the kind makes a machine silent for as long as is tolerated.
func (k Kind) silences() bool { return k == Blink || k == PausePeer }

// hampers reports whether strikes of the kind delay the first message of a machine after a silence.
func (k Kind) hampers() bool { return k.silences() || slices.Contains([]Kind{Loss, Delay, Late}, k) }

// TooMuch returns the strikes that, in combination, may make a machine silent for longer than is
// tolerated; their targets may be failed. It compares s, the latest strike, with those before.
// sameMachine reports whether two strikes hit the same machine.
func (s Strike) TooMuch(before []Strike, sameMachine func(a, b Strike) bool) (silent []Strike) {
	for _, b := range before {
		if s.At > b.At+b.For+returnTime {
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
