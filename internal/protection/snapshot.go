package protection

import (
	"encoding/binary"
	"fmt"
)

// A Checkpointed is the state of a process with respect to a checkpoint from which it has to resume.
type Checkpointed uint8

// The states.
const (
	NoCheckpoint Checkpointed = iota // no checkpoint exists, or the process has resumed from it
	Arriving                         // the checkpoint is arriving, or it is unknown whether one exists
	Arrived                          // the complete checkpoint has arrived, and Resume may be called
)

// A Position is the progress of a rank in one context: the number of its last message to or from another rank or,
// with Rank 0, of its last point.
type Position struct {
	Context uint32
	Rank    int
	Seq     uint64 // number of the last message or point
}

// A Snapshot is the state, besides the program's, that a process needs to resume from a checkpoint of its
// rank.
type Snapshot struct {
	Sent       []Position // last messages that are not in Kept
	Received   []Position
	Points     []Position
	Kept       []Message // messages that a process may lack, in program order
	Unreceived []Message // messages that the program has not received, in order per stream
	Own        []byte    // data of the creator of the checkpoint

	size int // size of all added records
}

// maxSnapshot bounds the bytes of a snapshot, including snapshotCost for each record.
const maxSnapshot = 256 << 20

// snapshotCost is the approximate cost of a record apart from its bytes.
const snapshotCost = 96

// AppendSnapshot appends the records of s and the record that ends a checkpoint.
func AppendSnapshot(b []byte, s *Snapshot) []byte {
	rows := []struct {
		kind RecordKind
		at   []Position
	}{{recordSent, s.Sent}, {recordReceived, s.Received}, {recordPoints, s.Points}}
	for _, row := range rows {
		for _, at := range row.at {
			b = appendPosition(b, row.kind, at)
		}
	}
	for i := range s.Kept {
		b = append(appendMessage(b, recordKept, &s.Kept[i]), s.Kept[i].Payload...)
	}
	for i := range s.Unreceived {
		b = append(appendMessage(b, recordUnreceived, &s.Unreceived[i]), s.Unreceived[i].Payload...)
	}
	b = binary.AppendUvarint(append(b, byte(recordOwn)), uint64(len(s.Own)))
	return append(append(b, s.Own...), byte(RecordEnd))
}

// Size returns the approximate size of s in bytes.
func (s *Snapshot) Size() int {
	n := len(s.Own) + snapshotCost*(len(s.Sent)+len(s.Received)+len(s.Points)+len(s.Kept)+len(s.Unreceived))
	for _, m := range s.Kept {
		n += len(m.Payload)
	}
	for _, m := range s.Unreceived {
		n += len(m.Payload)
	}
	return n
}

// Add adds one record that AppendSnapshot has written.
func (s *Snapshot) Add(r Record) error {
	switch r.Kind {
	case recordSent:
		s.Sent = append(s.Sent, r.At)
	case recordReceived:
		s.Received = append(s.Received, r.At)
	case recordPoints:
		s.Points = append(s.Points, r.At)
	case recordKept:
		s.Kept = append(s.Kept, *r.Message)
	case recordUnreceived:
		s.Unreceived = append(s.Unreceived, *r.Message)
	case recordOwn:
		s.Own = r.Bytes
	default:
		return fmt.Errorf("record of kind %q within a checkpoint", r.Kind)
	}
	s.size += snapshotCost + len(r.Bytes)
	if r.Message != nil {
		s.size += len(r.Message.Payload)
	}
	if s.size > maxSnapshot {
		return fmt.Errorf("checkpoint with more than %d bytes of messages and sequence numbers", maxSnapshot)
	}
	return nil
}
