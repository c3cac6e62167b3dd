package faultdetect

import "math/bits"

// HalfRounds returns L = ⌈log₂ n⌉, the number of rounds after which a heartbeat
// has reached every one of n members.
func HalfRounds(n int) int {
	if n < 2 {
		return 0
	}
	return bits.Len(uint(n - 1))
}

// Rounds returns 2⌈log₂ n⌉, the number of rounds after which double binary
// round robin repeats itself, and the periods of silence that make a suspect.
func Rounds(n int) int { return 2 * HalfRounds(n) }

// Distance returns how far from itself a member sends in the round that its
// heartbeat names: with k = 1 + heartbeat mod 2L, it is 2^(k-1) for k ≤ L and
// -2^(k-L-1) after that (double binary round robin of P2P-MPI; the heartbeat
// is the round number, so aligned counters mean the same round everywhere).
// It is 0 when n < 2.
func Distance(n int, heartbeat uint64) int {
	l := HalfRounds(n)
	if l == 0 {
		return 0
	}
	k := int(heartbeat % uint64(2*l)) // one less than the round of the papers
	if k < l {
		return 1 << k
	}
	return -(1 << (k - l))
}

// Target returns the member to which self sends its table, when nobody has
// failed. It is self itself when n < 2.
func Target(n, self int, heartbeat uint64) int {
	return modulo(self+Distance(n, heartbeat), n)
}

// liveTarget is Target when some members have failed: the distance is counted
// in live members. The round stays that of all n, so survivors that do not yet
// agree on who has failed still agree on the round; once they do agree, they
// gossip by double binary round robin among themselves. ok is false when
// nobody else is live.
func liveTarget(n, self int, heartbeat uint64, failed func(member int) bool) (to int, ok bool) {
	live := 1
	for i := range n {
		if i != self && !failed(i) {
			live++
		}
	}
	if live == 1 {
		return 0, false
	}
	hops := modulo(Distance(n, heartbeat), live)
	if hops == 0 { // a multiple of the survivors' number: it would be self
		hops = 1
	}
	for to = self; hops > 0; {
		if to = modulo(to+1, n); to == self || !failed(to) {
			hops--
		}
	}
	return to, true
}

func modulo(a, n int) int { return (a%n + n) % n }
