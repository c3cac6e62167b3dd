package viewgroup

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Bounds on the log of a correct group, in bytes. Each process joins at most once, finishes and fails. Now
// and then a process becomes the master of its rank. A few peers may propose each change at the same time,
// and again after an election. The log also contains the row of each newcomer.
const (
	// entryCost is the overhead of an entry, its hash included.
	entryCost = 320
	// logOfAll is for changes of the voters and for elections; a flapping link causes any number of them.
	logOfAll = 16 << 20
	// logOfEach is for each process.
	logOfEach = 2 << 10
)

// maxLog is more than a correct group ever writes to its log, in bytes. It grows with time to leave room
// for elections.
func (m *Member) maxLog() int {
	return logOfAll + logOfEach*len(m.view.States) + entryCost*(m.now/electionTicks)
}

// countLog adds the size of new entries. A malicious member can send an endless log; if the log exceeds its
// bound, countLog ends this peer's part in the group.
func (m *Member) countLog(entries []*raftpb.Entry) {
	for _, e := range entries {
		m.logged += entryCost + proto.Size(e)
	}
	if m.logged > m.maxLog() {
		m.broken = fmt.Errorf("view group: a log of %d bytes", m.logged)
	}
}
