package lead

import (
	"cmp"
	"iter"
	"time"
)

// A history records the times of a process's steps.
type history struct {
	last  mark
	marks [maxMarks - 1]mark // earlier marks, as a ring; each mark is at least markGap after the last but one
	made  int                // number of marks so far
}

// A mark is a step count and the time at which a process reached it.
type mark struct {
	steps uint64
	at    time.Duration
}

const (
	// markGap is the time resolution of a history.
	markGap = 200 * time.Microsecond
	// maxMarks bounds the marks of a history. They cover some ticks if steps are fast.
	maxMarks = 128
)

// step records one step.
func (h *history) step(now time.Duration) {
	if h.made == 0 || now-h.mark(h.made-1).at >= markGap {
		*h.mark(h.made) = h.last
		h.made++
	}
	h.last = mark{h.last.steps + 1, now}
}

func (h *history) mark(i int) *mark { return &h.marks[i%len(h.marks)] }

// appendTo appends the recorded marks, earliest first. There is always at least one.
func (h *history) appendTo(marks []mark) []mark {
	for i := max(0, h.made-len(h.marks)); i < h.made; i++ {
		marks = append(marks, *h.mark(i))
	}
	return append(marks, h.last)
}

// The process that has taken more steps.
const (
	masterAhead = iota - 1
	level
	replicaAhead
)

// compare divides the time between from and to into parts, and yields for each part the process that
// had taken more steps and the length of the part. Both lists must begin before from.
func compare(replica, master []mark, from, to time.Duration) iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		for at := from; at < to; {
			next := to
			for _, marks := range []*[]mark{&replica, &master} {
				for len(*marks) > 1 && (*marks)[1].at <= at {
					*marks = (*marks)[1:]
				}
				if len(*marks) > 1 {
					next = min(next, (*marks)[1].at)
				}
			}
			if !yield(cmp.Compare(replica[0].steps, master[0].steps), next-at) {
				return
			}
			at = next
		}
	}
}
