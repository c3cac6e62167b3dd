package submit

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A backlog holds, in order, the messages about a process that arrived too early.
type backlog struct {
	said []received
	size int // bytes, by weight
}

const (
	// maxEarly limits a backlog, in bytes. An honest peer sends less about a process: two full
	// streams of empty lines, each in a message of its own, come to 15 MB.
	maxEarly = 20 << 20

	// messageOverhead is added to the size of each message, so that empty messages are limited too.
	// It is about the memory that a decoded message takes.
	messageOverhead = 256
)

// weight returns about how many bytes a queued message takes.
func weight(m *jobpb.FromPeer) int {
	return messageOverhead + proto.Size(m)
}

// backlogs holds the backlog of each process.
type backlogs map[view.Process]backlog

// add queues a message about p, or returns an error if the backlog gets too large.
func (b backlogs) add(p view.Process, h received) error {
	kept := b[p]
	if kept.size += weight(h.msg); kept.size > maxEarly {
		return fmt.Errorf("%d bytes that cannot be handled yet", kept.size)
	}
	kept.said = append(kept.said, h)
	b[p] = kept
	return nil
}

// take removes and returns the messages about p.
func (b backlogs) take(p view.Process) []received {
	said := b[p].said
	delete(b, p)
	return said
}
