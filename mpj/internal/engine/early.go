package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An earlyChannel is a channel from a process that this process's view does not contain yet. Views
// and channels arrive by different paths.
type earlyChannel struct {
	from     view.Process
	receiver channel.Receiver
}

// maxEarlyChannels bounds the channels that wait for a view.
const maxEarlyChannels = 1024

// keepEarly keeps a channel until the view contains its sender. It closes an earlier channel of
// the same sender. e.mu is held.
func (e *Engine) keepEarly(from view.Process, r channel.Receiver) {
	for i, c := range e.earlyChannels {
		if c.from == from {
			c.receiver.Close()
			e.earlyChannels[i].receiver = r
			return
		}
	}
	if len(e.earlyChannels) == maxEarlyChannels {
		r.Close()
		return
	}
	e.earlyChannels = append(e.earlyChannels, earlyChannel{from, r})
}

// acceptEarly accepts the channels that have waited for the view. e.mu is held.
func (e *Engine) acceptEarly() {
	earlyChannels := e.earlyChannels
	e.earlyChannels = nil
	for _, c := range earlyChannels {
		e.accept(c.from, c.receiver)
	}
}
