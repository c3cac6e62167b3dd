package faultdetect

import (
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// DefaultHang is how long a process may leave its peer without an answer, unless its job says otherwise.
const DefaultHang = 5 * time.Second

// A CheckAlive watches over the processes of one job on this machine: each is
// asked at every tick, and one that has not answered for the tolerated hang is
// hung. Like Detector it is pure; package launch drives it.
type CheckAlive struct {
	hang    time.Duration
	step    time.Duration // the most that may pass between two ticks unnoticed
	last    time.Duration
	ran     time.Duration // time since the beginning in which this peer ran
	watched []watch
}

type watch struct {
	process  view.Process
	answered time.Duration // value of ran
}

// NewCheckAlive returns a CheckAlive that watches nobody, at time zero. It
// will be ticked once per period. Time beyond two periods between two ticks
// does not count: this peer was stopped, and cannot have heard an answer.
func NewCheckAlive(period, hang time.Duration) *CheckAlive {
	return &CheckAlive{hang: hang, step: 2 * period}
}

// Tolerate sets how long a process may leave its peer without an answer.
func (c *CheckAlive) Tolerate(hang time.Duration) { c.hang = hang }

// Hang returns how long a process may leave its peer without an answer.
func (c *CheckAlive) Hang() time.Duration { return c.hang }

// Watch begins to ask p. It must not be watched yet.
func (c *CheckAlive) Watch(p view.Process) {
	c.watched = append(c.watched, watch{process: p, answered: c.ran})
}

// Forget ends asking p.
func (c *CheckAlive) Forget(p view.Process) {
	c.watched = slices.DeleteFunc(c.watched, func(w watch) bool { return w.process == p })
}

// Answered says that p has answered since the last Tick.
func (c *CheckAlive) Answered(p view.Process) {
	for i := range c.watched {
		if c.watched[i].process == p {
			c.watched[i].answered = c.ran
		}
	}
}

// Late returns the processes that have left more than one question without an answer.
func (c *CheckAlive) Late() (late []view.Process) {
	for _, w := range c.watched {
		if c.ran-w.answered >= c.step {
			late = append(late, w.process)
		}
	}
	return late
}

// Excuse says that for a while p could not have answered, since nobody let it run: that time
// does not count.
func (c *CheckAlive) Excuse(p view.Process, while time.Duration) {
	for i := range c.watched {
		if w := &c.watched[i]; w.process == p {
			w.answered = min(w.answered+while, c.ran)
		}
	}
}

// Tick tells the time since NewCheckAlive, and returns the processes to ask
// and those that have just been found hung. A hung process is told of once and
// forgotten.
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
