package protection

import (
	"encoding/binary"
	"fmt"
)

// A Checkpointed says what a process knows of a checkpoint of its rank that it is to
// go on from.
type Checkpointed uint8

// What it may know.
const (
	NoCheckpoint Checkpointed = iota // there is none, or it has gone on from it
	Arriving                         // it is on its way; or nobody has said yet whether there is one
	Arrived                          // all of it is here: Resume goes on from it
)

// A Position says how far a rank has come in one context: with its messages to or
// from another rank, or, with Rank 0, with its points.
type Position struct {
	Context uint32
	Rank    int
	Seq     uint64 // number of the last one
}

// A Snapshot is what a process has to know, beside its program's own state, to go on
// from a checkpoint of its rank.
type Snapshot struct {
	Sent     []Position // the last messages that are not in Kept
	Received []Position
	Points   []Position
	Kept     []Message // that some process may lack, in program order
	Here     []Message // that the program has not received, each stream's in order
	Own      []byte    // known to whoever asked for the checkpoint

	size int // of what has been added
}

// MaxSnapshot bounds the bytes of a snapshot, with a little for each record of it.
const MaxSnapshot = 256 << 20

// snapshotCost is about what a record costs apart from its bytes.
const snapshotCost = 96

// AppendSnapshot appends the records of s, and that it is whole.
func AppendSnapshot(b []byte, s *Snapshot) []byte {
	rows := []struct {
		kind RecordKind
		at   []Position
	}{{RecordSent, s.Sent}, {RecordReceived, s.Received}, {RecordPoints, s.Points}}
	for _, row := range rows {
		for _, at := range row.at {
			b = appendPosition(b, row.kind, at)
		}
	}
	for i := range s.Kept {
		b = append(appendMessage(b, RecordKept, &s.Kept[i]), s.Kept[i].Payload...)
	}
	for i := range s.Here {
		b = append(appendMessage(b, RecordHere, &s.Here[i]), s.Here[i].Payload...)
	}
	b = binary.AppendUvarint(append(b, byte(RecordOwn)), uint64(len(s.Own)))
	return append(append(b, s.Own...), byte(RecordWhole))
}

// Size returns about how many bytes s takes.
func (s *Snapshot) Size() int {
	n := len(s.Own) + snapshotCost*(len(s.Sent)+len(s.Received)+len(s.Points)+len(s.Kept)+len(s.Here))
	for _, m := range s.Kept {
		n += len(m.Payload)
	}
	for _, m := range s.Here {
		n += len(m.Payload)
	}
	return n
}

// Add adds what a record says, as AppendSnapshot has written it.
func (s *Snapshot) Add(r Record) error {
	switch r.Kind {
	case RecordSent:
		s.Sent = append(s.Sent, r.At)
	case RecordReceived:
		s.Received = append(s.Received, r.At)
	case RecordPoints:
		s.Points = append(s.Points, r.At)
	case RecordKept:
		s.Kept = append(s.Kept, *r.Message)
	case RecordHere:
		s.Here = append(s.Here, *r.Message)
	case RecordOwn:
		s.Own = r.Bytes
	default:
		return fmt.Errorf("record of kind %q within a checkpoint", r.Kind)
	}
	s.size += snapshotCost + len(r.Bytes)
	if r.Message != nil {
		s.size += len(r.Message.Payload)
	}
	if s.size > MaxSnapshot {
		return fmt.Errorf("checkpoint with more than %d bytes of messages and numbers", MaxSnapshot)
	}
	return nil
}
