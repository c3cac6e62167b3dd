package filetransfer

import (
	"testing"
	"time"
)

// A bottleneck is a link with a rate in bytes per second, which all flights share and queue for.
type bottleneck struct {
	rate  float64
	delay time.Duration // delay of an acknowledgement after the bytes have left
	free  time.Duration // time when all bytes sent so far have left
}

// An ack is an acknowledgement in transit.
type ack struct {
	of    int
	bytes uint64
	at    time.Duration
}

// carry makes flights, each from its own start, send as much as they may until a given time. It returns
// the number of bytes that each has sent. For the last half of the time it returns the longest wait in
// the queue, and how long the link was busy.
func (b *bottleneck) carry(flights []*flight, from []time.Duration, until time.Duration) (wait, busy time.Duration) {
	var acks []ack // in the order of their times
	for now := time.Duration(0); now < until; now += time.Millisecond {
		for len(acks) > 0 && acks[0].at <= now {
			flights[acks[0].of].arrived(acks[0].bytes, acks[0].at)
			acks = acks[1:]
		}
		for i, f := range flights {
			for n := f.room(pieceSize); now >= from[i] && n > 0; n = f.room(pieceSize) {
				f.recordSent(n, now)
				takes := time.Duration(float64(n) / b.rate * float64(time.Second))
				b.free = max(b.free, now) + takes
				acks = append(acks, ack{i, uint64(f.sent), b.free + b.delay})
				if now > until/2 {
					wait, busy = max(wait, b.free-now), busy+takes
				}
			}
		}
	}
	return wait, busy
}

// TestFlightsFillALinkWithBoundedDelay tries links of different rates and delays, and different numbers of
// flights. Other traffic waits much less than the 3 s after which a connection without an answer is dropped.
func TestFlightsFillALinkWithBoundedDelay(t *testing.T) {
	const mbit = 1e6 / 8
	tests := map[string]struct {
		rate    float64
		delay   time.Duration
		flights int
		apart   time.Duration // interval between the starts of the flights
		wait    time.Duration // longest allowed wait of other traffic
	}{
		"2 Mbit/s":                       {2 * mbit, 60 * time.Millisecond, 1, 0, 2 * queued},
		"2 Mbit/s for three":             {2 * mbit, 60 * time.Millisecond, 3, 0, 3 * queued},
		"2 Mbit/s for three in turn":     {2 * mbit, 60 * time.Millisecond, 3, 5 * time.Second, 4 * queued},
		"2 Mbit/s for thirty":            {2 * mbit, 60 * time.Millisecond, 30, 0, 1500 * time.Millisecond},
		"100 Mbit/s":                     {100 * mbit, 20 * time.Millisecond, 1, 0, 2 * queued},
		"1 Gbit/s around half the world": {1000 * mbit, 200 * time.Millisecond, 1, 0, 2 * queued},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var flights []*flight
			var from []time.Duration
			for i := range tt.flights {
				flights, from = append(flights, newFlight()), append(from, time.Duration(i)*tt.apart)
			}
			const lasts = 40 * time.Second
			b := bottleneck{rate: tt.rate, delay: tt.delay}
			wait, busy := b.carry(flights, from, lasts)
			t.Logf("others wait for up to %v, the link is busy for %v of %v", wait, busy, lasts/2)
			if wait > tt.wait {
				t.Errorf("other traffic waits for %v, want at most %v", wait, tt.wait)
			}
			if busy < lasts/2*9/10 {
				t.Errorf("the link is busy for %v of %v", busy, lasts/2)
			}
			for i, f := range flights {
				if f.acked < leastWindow {
					t.Errorf("flight %d delivers only %d bytes", i, f.acked)
				}
			}
		})
	}
}

// TestO4ImpossibleArrivalsAreRejected: an impossible number of arrived bytes is rejected.
func TestO4ImpossibleArrivalsAreRejected(t *testing.T) {
	f := newFlight()
	f.recordSent(1000, 0)
	for _, step := range []struct {
		bytes uint64
		ok    bool
	}{{1001, false}, {1 << 63, false}, {500, true}, {499, false}, {500, true}, {1000, true}} {
		if got := f.arrived(step.bytes, time.Second); got != step.ok {
			t.Errorf("acknowledgement of %d bytes of 1000: accepted %v, want %v", step.bytes, got, step.ok)
		}
	}
}
