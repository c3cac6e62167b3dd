package faultdetect

import (
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// DefaultHang is the default tolerated hang: how long a process may leave its peer without an answer.
const DefaultHang = 5 * time.Second

// A CheckAlive monitors the processes of one job on this machine. It asks each process at every tick. A
// process that has not answered for the tolerated hang is hung. Like Detector it is pure; package launch
// drives it.
type CheckAlive struct {
	hang    time.Duration
	late    time.Duration // time without an answer after which a process has left two questions unanswered
	step    time.Duration // longest time between two ticks that counts in full
	last    time.Duration
	ran     time.Duration // time since the start in which this peer ran
	watched []watch
}

type watch struct {
	process  view.Process
	answered time.Duration // value of ran at its last answer
}

// NewCheckAlive returns a CheckAlive without processes, at time zero. The caller must call Tick once per
// period. If more than a period and a quarter pass between two ticks, the excess does not count: this peer was
// stopped, or lacked a processor, and could not receive answers. So a process is late at two ticks at
// least, the one at which it is hung included, however late the ticks are, if hang is at least four periods.
func NewCheckAlive(period, hang time.Duration) *CheckAlive {
	return &CheckAlive{hang: hang, late: 2 * period, step: period + period/4}
}

// Tolerate sets the tolerated hang: how long a process may leave its peer without an answer.
func (c *CheckAlive) Tolerate(hang time.Duration) { c.hang = hang }

// Hang returns the tolerated hang.
func (c *CheckAlive) Hang() time.Duration { return c.hang }

// Watch starts to monitor p, which must not be monitored yet.
func (c *CheckAlive) Watch(p view.Process) {
	c.watched = append(c.watched, watch{process: p, answered: c.ran})
}

// Forget stops monitoring p.
func (c *CheckAlive) Forget(p view.Process) {
	c.watched = slices.DeleteFunc(c.watched, func(w watch) bool { return w.process == p })
}

// Answered records that p has answered since the last Tick.
func (c *CheckAlive) Answered(p view.Process) {
	for i := range c.watched {
		if c.watched[i].process == p {
			c.watched[i].answered = c.ran
		}
	}
}

// Late returns the processes that have left more than one question unanswered.
func (c *CheckAlive) Late() (late []view.Process) {
	for _, w := range c.watched {
		if c.ran-w.answered >= c.late {
			late = append(late, w.process)
		}
	}
	return late
}

// Excuse records that p was not allowed to run for a while. That time does not count.
func (c *CheckAlive) Excuse(p view.Process, while time.Duration) {
	for i := range c.watched {
		if w := &c.watched[i]; w.process == p {
			w.answered = min(w.answered+while, c.ran)
		}
	}
}

// Tick sets the time since NewCheckAlive. It returns the processes to ask and those that have just been
// found hung. A hung process is reported once and no longer monitored.
func (c *CheckAlive) Tick(now time.Duration) (ask, hung []view.Process) {
	c.ran += min(max(0, now-c.last), c.step)
	c.last = max(now, c.last)
	for _, w := range c.watched {
		if c.ran-w.answered >= c.hang {
			hung = append(hung, w.process)
		} else {
			ask = append(ask, w.process)
		}
	}
	for _, p := range hung {
		c.Forget(p)
	}
	return ask, hung
}
