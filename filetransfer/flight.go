package filetransfer

import "time"

const (
	// queued is how much longer than over an empty way what is under way may take to arrive, as in
	// RFC 6817: all else that goes the same way waits so long.
	queued = 100 * time.Millisecond
	// Bytes that may be under way, at first, at least and at most.
	firstWindow = 16 << 10
	leastWindow = 8 << 10
	mostWindow  = 32 << 20
	// leastChunk is how many bytes go at a time at least, and are acknowledged together; maxWrite is
	// the most.
	leastChunk = leastWindow / 4
	// emptyFor is for how long at least the shortest delay counts as that of an empty way: routes change.
	emptyFor = time.Minute
)

// A flight says how much may be under way on a link beyond the local network: so much that the
// link is full, and no more, as the rest would lie in a queue that control traffic has to pass. It
// is a pure core.
//
//	window = rate at which bytes arrive * (delay over an empty way + queued)
//
// once a round trip, if it was in the way. The delay over an empty way is the shortest that was seen.
type flight struct {
	sent, acked int64 // bytes since the beginning
	window      float64
	marks       []mark // of what is under way, oldest first

	until   int64   // the round is over when more is acknowledged
	rate    float64 // the best of the round, in bytes a nanosecond
	limited bool    // the window was in the way

	empty, before time.Duration // shortest delay of this emptyFor, and of the one before; 0: none
	since         time.Duration // this emptyFor
}

// A mark is when bytes up to a number were sent, and how many were acknowledged then.
type mark struct {
	end, acked int64
	at         time.Duration
}

func newFlight() *flight { return &flight{window: firstWindow, until: firstWindow} }

// room returns how many of n bytes may go now.
func (f *flight) room(n int) int {
	n = min(n, max(leastChunk, min(int(f.window)/8, maxWrite)))
	if free := int64(f.window) - (f.sent - f.acked); int64(n) > free {
		f.limited = true
		return 0
	}
	return n
}

// left takes note that n bytes go.
func (f *flight) left(n int, now time.Duration) {
	f.sent += int64(n)
	f.marks = append(f.marks, mark{f.sent, f.acked, now})
}

// arrived takes note of how many bytes the other end has. It is false when that cannot be.
func (f *flight) arrived(bytes uint64, now time.Duration) bool {
	if bytes > uint64(f.sent) || int64(bytes) < f.acked {
		return false
	}
	f.acked = int64(bytes)
	for len(f.marks) > 0 && f.marks[0].end <= f.acked {
		f.took(f.marks[0], now)
		f.marks = f.marks[1:]
	}
	if f.acked > f.until && f.rate > 0 {
		if f.limited {
			f.fit()
		}
		f.until, f.rate, f.limited = f.sent, 0, false
	}
	return true
}

// took takes note that what was sent at a mark has arrived.
func (f *flight) took(m mark, now time.Duration) {
	delay := max(now-m.at, 1)
	f.rate = max(f.rate, float64(f.acked-m.acked)/float64(delay))
	if now-f.since > emptyFor {
		f.before, f.empty, f.since = f.empty, 0, now
	}
	if f.empty == 0 || delay < f.empty {
		f.empty = delay
	}
}

// fit fits the window to what was seen in a round.
func (f *flight) fit() {
	base := f.empty
	if f.before > 0 {
		base = min(base, f.before)
	}
	f.window = max(f.rate*float64(base+queued), f.window/2)
	f.window = min(max(f.window, leastWindow), mostWindow)
}
