package viewgroup

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// What an honest group puts into its log, in bytes. Each process joins at most, finishes and fails, now and then one
// becomes the master of its rank; each change may be proposed by a few at a time and again after an election.
// A peer that comes later has its row in it.
const (
	// entryCost is what an entry takes beside what is in it.
	entryCost = 256
	// logOfAll is for the changes of who votes, and for elections: a link that flaps makes any number of them.
	logOfAll = 16 << 20
	// logOfEach is for each process.
	logOfEach = 2 << 10
)

// maxLog is more than an honest group ever puts into its log, in bytes. Elections find room as long as they take
// their time.
func (m *Member) maxLog() int {
	return logOfAll + logOfEach*len(m.view.States) + entryCost*(m.now/electionTicks)
}

// weigh takes note of entries that the log is to have. A log without end, which a member that lies can send, breaks
// this one.
func (m *Member) weigh(entries []*raftpb.Entry) {
	for _, e := range entries {
		m.logged += entryCost + proto.Size(e)
	}
	if m.logged > m.maxLog() {
		m.broken = fmt.Errorf("view group: a log of %d bytes", m.logged)
	}
}
