package messagelog

import (
	"bytes"
	"os"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// newLog returns an empty log and its directory.
func newLog(t *testing.T, limit uint64) (*Log, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := New(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, dir
}

// reading is the process that reads a log.
var reading = view.Process{Replica: 2}

// all returns the contents of l, read piece by piece, without the first byte.
func all(t *testing.T, l *Log) []byte {
	t.Helper()
	var read []byte
	clear(l.readers)
	for {
		piece, last := l.Piece(reading, uint64(len(read)))
		read = append(read, piece...)
		if last {
			return read[1:]
		}
		if len(piece) == 0 {
			t.Fatalf("no piece follows after %d bytes", len(read))
		}
	}
}

func TestMessageLogIsReadFromFileAndMemory(t *testing.T) {
	l, dir := newLog(t, 1<<30)
	var want []byte
	for i := range 40 {
		m := protection.Message{Source: 1, Seq: uint64(i + 1), Payload: bytes.Repeat([]byte{byte(i)}, 100_000)}
		d := protection.Determinant{Point: protection.Point{Index: uint64(i)}, Outcome: []byte("outcome")}
		own := protection.Message{Source: 2, Seq: uint64(i + 1), Payload: []byte("stays here")}
		want = append(protection.AppendMessage(want, &m), m.Payload...)
		want = protection.AppendOutcome(want, &d)
		write, why, _ := l.Keep(protection.Output{Deliver: []protection.Message{m, own}, Decided: []protection.Determinant{d}}, 2)
		if why != "" {
			t.Fatal(why)
		}
		if write != nil && i%7 != 4 { // otherwise the write is delayed
			write()
		} else {
			l.current.busy = false
		}
		if got := all(t, l); !bytes.Equal(got, want) {
			t.Fatalf("after %d records: %d bytes, want %d", 2*i+2, len(got), len(want))
		}
	}
	if s := l.current; s.written == 0 || len(s.tail) == 0 {
		t.Errorf("%d bytes in the file, %d in memory: want bytes in both", s.written, len(s.tail))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder contains %v, %v", left, err)
	}
}

func TestTooLongMessageLogIsDropped(t *testing.T) {
	l, _ := newLog(t, 1000)
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, 600)}
	for i, want := range []bool{true, false, false} {
		_, why, permanent := l.Keep(protection.Output{Deliver: []protection.Message{m}}, 0)
		if (why == "") != (i != 1) || !permanent {
			t.Errorf("message %d: dropped because %q, permanent %v", i, why, permanent)
		}
		if b, _ := l.Piece(reading, 0); (len(b) == 1) != want {
			t.Errorf("message %d: begins with %q", i, b)
		}
		if b, last := l.Piece(reading, 1); (len(b) > 0 && last) != want {
			t.Errorf("message %d: %d bytes, last %v", i, len(b), last)
		}
	}
}

func TestUnwritableMessageLogIsDropped(t *testing.T) {
	l, _ := newLog(t, 1<<30)
	l.current.file.Close()
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, tailWritten)}
	write, why, _ := l.Keep(protection.Output{Deliver: []protection.Message{m}}, 0)
	if write == nil || why != "" {
		t.Fatalf("a write is due: %v, the log was dropped because %q", write != nil, why)
	}
	write()
	if _, why, _ := l.Keep(protection.Output{Deliver: []protection.Message{m}}, 0); why == "" {
		t.Error("the dropped log was not reported")
	}
	if b, last := l.Piece(reading, 0); len(b) > 0 || last {
		t.Errorf("a dropped log returned a piece of %d bytes", len(b))
	}
}

func TestPieceBeyondTheEndIsEmpty(t *testing.T) {
	l, _ := newLog(t, 1000)
	if b, last := l.Piece(reading, 1); len(b) > 0 || last {
		t.Errorf("before the reader began: %d bytes, last %v", len(b), last)
	}
	if b, last := l.Piece(reading, 0); len(b) != 1 || last {
		t.Errorf("the beginning: %q, last %v", b, last)
	}
	if b, last := l.Piece(reading, 1); len(b) > 0 || !last {
		t.Errorf("an empty log: %d bytes, last %v", len(b), last)
	}
	if b, last := l.Piece(reading, 2); len(b) > 0 || last {
		t.Errorf("beyond the end: %d bytes, last %v", len(b), last)
	}
}

// logged appends one message of the given length to l, and returns its record.
func logged(t *testing.T, l *Log, seq uint64, length int) []byte {
	t.Helper()
	m := protection.Message{Source: 1, Seq: seq, Payload: bytes.Repeat([]byte{byte(seq)}, length)}
	write, why, _ := l.Keep(protection.Output{Deliver: []protection.Message{m}}, 0)
	if why != "" {
		t.Fatal(why)
	}
	if write != nil {
		write()
	}
	return append(protection.AppendMessage(nil, &m), m.Payload...)
}

// TestCheckpointReplacesTheLogBeforeIt reads a log with three checkpoints. The log must not contain
// records from between the first and the last checkpoint.
func TestCheckpointReplacesTheLogBeforeIt(t *testing.T) {
	v := view.New(1, 3)
	l, dir := newLog(t, 1<<30)
	prologue := logged(t, l, 1, 300_000)
	var want []byte
	for i := range 3 {
		d := l.BeginCheckpoint(v, false)
		state := bytes.Repeat([]byte{byte(100 + i)}, 3_000_000)
		d.Write(state)
		during := logged(t, l, uint64(10+i), 10)
		if !d.Finish() {
			t.Fatal(d.err)
		}
		l.Commit(d, []byte("snapshot"), v)
		if d.Discard(); d.file != nil {
			t.Fatal("the checkpoint was not committed")
		}
		after := logged(t, l, uint64(20+i), 400_000)
		want = append(append(append(protection.AppendState(bytes.Clone(prologue), uint64(len(state))), state...), "snapshot"...), after...)
		_ = during
	}
	if got := all(t, l); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if b, _ := l.Piece(reading, 0); string(b) != "j" {
		t.Errorf("the log begins with %q", b)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder contains %v, %v", left, err)
	}
}

func TestNoCheckpointWhileAReplicaReads(t *testing.T) {
	v := view.New(1, 3)
	l, _ := newLog(t, 1<<30)
	logged(t, l, 1, 10)
	late := l.BeginCheckpoint(v, false)
	late.Write([]byte("state"))
	late.Finish()
	l.Piece(reading, 0)
	if l.BeginCheckpoint(v, false) != nil {
		t.Error("a draft was created while a replica reads")
	}
	if l.Commit(late, nil, v); late.file == nil || l.resumed {
		t.Error("a checkpoint replaced the part that a replica reads")
	}
	late.Discard()
	gone, _ := v.With(reading, view.Failed)
	if d := l.BeginCheckpoint(gone, false); d == nil {
		t.Error("no draft was created once the reader had failed")
	} else {
		d.Discard()
	}
	l.Piece(reading, 0)
	if _, last := l.Piece(reading, 1); last {
		t.Error("the end was reported before the last message")
	}
	if _, last := l.Piece(reading, 1+uint64(len(logged(t, l, 2, 0)))); last {
		t.Error("the end was reported at a wrong position")
	}
	all(t, l)
	d := l.BeginCheckpoint(v, false)
	if d == nil {
		t.Fatal("no draft was created once the log had been read")
	}
	d.Finish()
	l.Commit(d, nil, v)
	if b, last := l.Piece(reading, 2); len(b) > 0 || last {
		t.Errorf("a reader of the earlier checkpoint got %d bytes of the later one", len(b))
	}
}

func TestCheckpointCompletesADroppedLog(t *testing.T) {
	v := view.New(1, 3)
	l, _ := newLog(t, 1000)
	l.EndPrologue()
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, 2000)}
	overfill := protection.Output{Deliver: []protection.Message{m}}
	if _, why, permanent := l.Keep(overfill, 0); why == "" || permanent || l.current != nil {
		t.Fatalf("the log was dropped because %q, permanently: %v", why, permanent)
	}
	if b, last := l.Piece(reading, 0); len(b) > 0 || last {
		t.Errorf("the dropped log begins with %q", b)
	}
	d := l.BeginCheckpoint(v, false)
	d.Write(make([]byte, 100))
	d.Finish()
	l.Commit(d, nil, v)
	if got := all(t, l); len(got) != 100+protection.StateHeader {
		t.Errorf("%d bytes", len(got))
	}
	if _, why, _ := l.Keep(overfill, 0); why != "" || l.current != nil {
		t.Errorf("the drop was reported again: %q", why)
	}
	long := l.BeginCheckpoint(v, false)
	if n, err := long.Write(make([]byte, 2000)); n != 2000 || err != nil || long.Finish() {
		t.Errorf("a state above the limit: %d, %v", n, err)
	}
	long.Discard()
}
