package protection

import (
	"errors"
	"reflect"
	"testing"
)

func encodedLog() []byte {
	m := Message{Context: 300, Source: 2, Dest: 1, Tag: -7, Seq: 1 << 40, Sync: true, Payload: []byte("hello")}
	b := append(AppendMessage(nil, &m), m.Payload...)
	b = AppendOutcome(b, &Determinant{Point: Point{Context: 1, Index: 9}, Outcome: []byte("head")})
	return append(b, AppendMessage(nil, &Message{Source: 3, Dest: 1, Seq: 2})...)
}

func snapshot() Snapshot {
	return Snapshot{
		Sent:       []Position{{Context: 300, Rank: 2, Seq: 4}},
		Received:   []Position{{Context: 300, Rank: 2, Seq: 9}, {Context: 301, Rank: 3, Seq: 1}},
		Points:     []Position{{Seq: 1 << 33}},
		Kept:       []Message{{Context: 300, Source: 1, Dest: 2, Tag: 3, Seq: 5, Sync: true, Payload: []byte("kept")}},
		Unreceived: []Message{{Context: 300, Source: 2, Dest: 1, Seq: 7, Payload: []byte("here")}, {Source: 1, Dest: 1, Seq: 1, Sync: true, Payload: []byte{}}},
		Own:        []byte("own"),
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	want := snapshot()
	var got Snapshot
	b := AppendSnapshot(nil, &want)
	for {
		r, rest, err := ReadRecord(b, 1)
		if err != nil {
			t.Fatal(err)
		}
		if b = rest; r.Kind == RecordEnd {
			break
		}
		if err := got.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if got.size = 0; len(b) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the snapshot reads as %+v, want %+v, and %d bytes are left", got, want, len(b))
	}
}

func TestSnapshotIsBounded(t *testing.T) {
	var s Snapshot
	big := Record{Kind: recordUnreceived, Message: &Message{Payload: make([]byte, maxSnapshot/2)}}
	if err := s.Add(big); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(big); err == nil {
		t.Error("a snapshot above the limit was accepted")
	}
	if err := s.Add(Record{Kind: RecordMessage}); err == nil {
		t.Error("a later message was accepted as part of the snapshot")
	}
}

func TestMessageLogRoundTrip(t *testing.T) {
	want := []Record{
		{Kind: RecordMessage, Message: &Message{Context: 300, Source: 2, Dest: 1, Tag: -7, Seq: 1 << 40, Sync: true, Payload: []byte("hello")}},
		{Kind: RecordOutcome, Outcome: Determinant{Point: Point{Context: 1, Index: 9}, Outcome: []byte("head")}},
		{Kind: RecordMessage, Message: &Message{Source: 3, Dest: 1, Seq: 2, Payload: []byte{}}},
	}
	b := encodedLog()
	for _, w := range want {
		got, rest, err := ReadRecord(b, 1)
		if err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("the record reads as %+v, %v; want %+v", got, err, w)
		}
		b = rest
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

func TestTruncatedRecordIsAnError(t *testing.T) {
	b := encodedLog()
	_, rest, _ := ReadRecord(b, 1)
	for n := range len(b) - len(rest) {
		if _, _, err := ReadRecord(b[:n], 1); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes: %v, want ErrTruncated", n, err)
		}
	}
}

// FuzzReadRecord checks that arbitrary bytes from another process are harmless, and that a decoded record stays
// the same when it is encoded and decoded again.
func FuzzReadRecord(f *testing.F) {
	f.Add(encodedLog())
	f.Add([]byte("m\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("s\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("o"))
	whole := snapshot()
	f.Add(AppendSnapshot(nil, &whole))
	f.Add(AppendSnapshot(nil, &Snapshot{Kept: whole.Kept}))
	f.Add(AppendSnapshot(nil, &Snapshot{Unreceived: whole.Unreceived}))
	f.Add(AppendState(nil, 1<<40))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := ReadRecord(b, 1)
		if err != nil {
			return
		}
		again := written(r)
		if len(again) > len(b)-len(rest) {
			t.Errorf("%x decodes to %+v, which encodes to the longer %x", b, r, again)
		}
		if got, left, err := ReadRecord(again, 1); err != nil || len(left) > 0 || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v decodes to %+v, %v", r, got, err)
		}
	})
}

// written returns the encoding of r.
func written(r Record) []byte {
	switch r.Kind {
	case RecordMessage, recordKept, recordUnreceived:
		return append(appendMessage(nil, r.Kind, r.Message), r.Message.Payload...)
	case RecordOutcome:
		return AppendOutcome(nil, &r.Outcome)
	case recordSent, recordReceived, recordPoints:
		return appendPosition(nil, r.Kind, r.At)
	case RecordState:
		return AppendState(nil, r.Length)
	case recordOwn:
		b := AppendSnapshot(nil, &Snapshot{Own: r.Bytes})
		return b[:len(b)-1]
	}
	return []byte{byte(r.Kind)}
}
