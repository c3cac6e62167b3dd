package filetransfer

import "time"

const (
	// queued is the extra delay that bytes in flight may cause on an empty link, as in RFC 6817. All
	// other traffic on the link has this extra delay.
	queued = 100 * time.Millisecond
	// Bounds of the window, in bytes: initial, least and greatest.
	firstWindow = 16 << 10
	leastWindow = 8 << 10
	mostWindow  = 32 << 20
	// leastChunk is the least number of bytes that are sent and acknowledged together. maxWrite is the
	// greatest number that is sent together.
	leastChunk = leastWindow / 4
	// emptyFor is how long, at least, the shortest delay counts as that of the empty link. It expires
	// because routes change.
	emptyFor = time.Minute
)

// A flight decides how many bytes may be in flight on a link beyond the site: enough to fill the link and
// no more. Additional bytes would wait in a queue that control traffic has to pass. A flight is a pure core.
// The window is
//
//	window = arrival rate * (delay of the empty link + queued)
//
// The window is computed once per round trip in which it limited the sender. The delay of the empty link is
// the shortest measured one.
type flight struct {
	sent, acked int64 // bytes since the start
	window      float64
	marks       []mark // sends that are not acknowledged, oldest first

	until   int64   // the round ends when more than this is acknowledged
	rate    float64 // greatest arrival rate of the round, in bytes per nanosecond
	limited bool    // the window limited the sender

	empty, before time.Duration // shortest delay of the current period emptyFor, and of the previous one; 0 if unknown
	since         time.Duration // start of the current period
}

// A mark records when the bytes up to end were sent, and how many were acknowledged then.
type mark struct {
	end, acked int64
	at         time.Duration
}

func newFlight() *flight { return &flight{window: firstWindow, until: firstWindow} }

// room returns how many of n bytes may be sent now.
func (f *flight) room(n int) int {
	n = min(n, max(leastChunk, min(int(f.window)/8, maxWrite)))
	if free := int64(f.window) - (f.sent - f.acked); int64(n) > free {
		f.limited = true
		return 0
	}
	return n
}

func (f *flight) recordSent(n int, now time.Duration) {
	f.sent += int64(n)
	f.marks = append(f.marks, mark{f.sent, f.acked, now})
}

// arrived records how many bytes the other end has received. It returns false if that number is
// impossible.
func (f *flight) arrived(bytes uint64, now time.Duration) bool {
	if bytes > uint64(f.sent) || int64(bytes) < f.acked {
		return false
	}
	f.acked = int64(bytes)
	for len(f.marks) > 0 && f.marks[0].end <= f.acked {
		f.acknowledged(f.marks[0], now)
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

// acknowledged records the arrival of the bytes sent at a mark.
func (f *flight) acknowledged(m mark, now time.Duration) {
	delay := max(now-m.at, 1)
	f.rate = max(f.rate, float64(f.acked-m.acked)/float64(delay))
	if now-f.since > emptyFor {
		f.before, f.empty, f.since = f.empty, 0, now
	}
	if f.empty == 0 || delay < f.empty {
		f.empty = delay
	}
}

// fit adjusts the window to the measurements of a round.
func (f *flight) fit() {
	base := f.empty
	if f.before > 0 {
		base = min(base, f.before)
	}
	f.window = max(f.rate*float64(base+queued), f.window/2)
	f.window = min(max(f.window, leastWindow), mostWindow)
}
