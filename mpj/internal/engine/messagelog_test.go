package engine

import (
	"bytes"
	"os"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// log returns an empty log and its directory.
func log(t *testing.T, limit uint64) (*MessageLog, string) {
	t.Helper()
	dir := t.TempDir()
	p, err := NewMessageLog(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, dir
}

// reading is the process that reads a log.
var reading = view.Process{Replica: 2}

// all returns the contents of p, read piece by piece, without the first byte.
func all(t *testing.T, p *MessageLog) []byte {
	t.Helper()
	var read []byte
	clear(p.readers)
	for {
		piece, last := p.piece(reading, uint64(len(read)))
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
	p, dir := log(t, 1<<30)
	var want []byte
	for i := range 40 {
		m := protection.Message{Source: 1, Seq: uint64(i + 1), Payload: bytes.Repeat([]byte{byte(i)}, 100_000)}
		d := protection.Determinant{Point: protection.Point{Index: uint64(i)}, Outcome: []byte("outcome")}
		own := protection.Message{Source: 2, Seq: uint64(i + 1), Payload: []byte("stays here")}
		want = append(protection.AppendMessage(want, &m), m.Payload...)
		want = protection.AppendOutcome(want, &d)
		due, why, _ := p.keep(protection.Output{Deliver: []protection.Message{m, own}, Decided: []protection.Determinant{d}}, 2)
		if why != "" {
			t.Fatal(why)
		}
		if due != nil && i%7 != 4 { // otherwise the write is delayed
			p.write(due)
		} else {
			p.current.busy = false
		}
		if got := all(t, p); !bytes.Equal(got, want) {
			t.Fatalf("after %d records: %d bytes, want %d", 2*i+2, len(got), len(want))
		}
	}
	if s := p.current; s.written == 0 || len(s.tail) == 0 {
		t.Errorf("%d bytes in the file, %d in memory: want bytes in both", s.written, len(s.tail))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder contains %v, %v", left, err)
	}
}

func TestTooLongMessageLogIsDropped(t *testing.T) {
	p, _ := log(t, 1000)
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, 600)}
	for i, want := range []bool{true, false, false} {
		_, why, permanent := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0)
		if (why == "") != (i != 1) || !permanent {
			t.Errorf("message %d: dropped because %q, permanent %v", i, why, permanent)
		}
		if b, _ := p.piece(reading, 0); (len(b) == 1) != want {
			t.Errorf("message %d: begins with %q", i, b)
		}
		if b, last := p.piece(reading, 1); (len(b) > 0 && last) != want {
			t.Errorf("message %d: %d bytes, last %v", i, len(b), last)
		}
	}
}

func TestUnwritableMessageLogIsDropped(t *testing.T) {
	p, _ := log(t, 1<<30)
	p.current.file.Close()
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, logTail)}
	due, why, _ := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0)
	if due == nil || why != "" {
		t.Fatalf("a checkpoint is due: %v, the log was dropped because %q", due, why)
	}
	p.write(due)
	if _, why, _ := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0); why == "" {
		t.Error("the dropped log was not reported")
	}
	if b, last := p.piece(reading, 0); len(b) > 0 || last {
		t.Errorf("a dropped log returned a piece of %d bytes", len(b))
	}
}

func TestPieceBeyondTheEndIsEmpty(t *testing.T) {
	p, _ := log(t, 1000)
	if b, last := p.piece(reading, 1); len(b) > 0 || last {
		t.Errorf("before the reader began: %d bytes, last %v", len(b), last)
	}
	if b, last := p.piece(reading, 0); len(b) != 1 || last {
		t.Errorf("the beginning: %q, last %v", b, last)
	}
	if b, last := p.piece(reading, 1); len(b) > 0 || !last {
		t.Errorf("an empty log: %d bytes, last %v", len(b), last)
	}
	if b, last := p.piece(reading, 2); len(b) > 0 || last {
		t.Errorf("beyond the end: %d bytes, last %v", len(b), last)
	}
}

// logged appends one message of the given length to p, and returns its record.
func logged(t *testing.T, p *MessageLog, seq uint64, length int) []byte {
	t.Helper()
	m := protection.Message{Source: 1, Seq: seq, Payload: bytes.Repeat([]byte{byte(seq)}, length)}
	due, why, _ := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0)
	if why != "" {
		t.Fatal(why)
	}
	if due != nil {
		p.write(due)
	}
	return append(protection.AppendMessage(nil, &m), m.Payload...)
}

// TestCheckpointReplacesTheLogBeforeIt reads a log with three checkpoints. The log must not contain
// records from between the first and the last checkpoint.
func TestCheckpointReplacesTheLogBeforeIt(t *testing.T) {
	v := view.New(1, 3)
	p, dir := log(t, 1<<30)
	prologue := logged(t, p, 1, 300_000)
	var want []byte
	for i := range 3 {
		d := p.draft(v, false)
		state := bytes.Repeat([]byte{byte(100 + i)}, 3_000_000)
		d.Write(state)
		during := logged(t, p, uint64(10+i), 10)
		if !d.finish() {
			t.Fatal(d.err)
		}
		p.commit(d, []byte("snapshot"), v)
		if d.discard(); d.file != nil {
			t.Fatal("the checkpoint was not committed")
		}
		after := logged(t, p, uint64(20+i), 400_000)
		want = append(append(append(protection.AppendState(bytes.Clone(prologue), uint64(len(state))), state...), "snapshot"...), after...)
		_ = during
	}
	if got := all(t, p); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if b, _ := p.piece(reading, 0); string(b) != "j" {
		t.Errorf("the log begins with %q", b)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder contains %v, %v", left, err)
	}
}

func TestNoCheckpointWhileAReplicaReads(t *testing.T) {
	v := view.New(1, 3)
	p, _ := log(t, 1<<30)
	logged(t, p, 1, 10)
	late := p.draft(v, false)
	late.Write([]byte("state"))
	late.finish()
	p.piece(reading, 0)
	if p.draft(v, false) != nil {
		t.Error("a draft was created while a replica reads")
	}
	if p.commit(late, nil, v); late.file == nil || p.resumed {
		t.Error("a checkpoint replaced the part that a replica reads")
	}
	late.discard()
	gone, _ := v.With(reading, view.Failed)
	if d := p.draft(gone, false); d == nil {
		t.Error("no draft was created once the reader had failed")
	} else {
		d.discard()
	}
	p.piece(reading, 0)
	if _, last := p.piece(reading, 1); last {
		t.Error("the end was reported before the last message")
	}
	if _, last := p.piece(reading, 1+uint64(len(logged(t, p, 2, 0)))); last {
		t.Error("the end was reported at a wrong position")
	}
	all(t, p)
	d := p.draft(v, false)
	if d == nil {
		t.Fatal("no draft was created once the log had been read")
	}
	d.finish()
	p.commit(d, nil, v)
	if b, last := p.piece(reading, 2); len(b) > 0 || last {
		t.Errorf("a reader of the earlier checkpoint got %d bytes of the later one", len(b))
	}
}

func TestCheckpointCompletesADroppedLog(t *testing.T) {
	v := view.New(1, 3)
	p, _ := log(t, 1000)
	p.split()
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, 2000)}
	overfill := protection.Output{Deliver: []protection.Message{m}}
	if _, why, permanent := p.keep(overfill, 0); why == "" || permanent || p.current != nil {
		t.Fatalf("the log was dropped because %q, permanently: %v", why, permanent)
	}
	if b, last := p.piece(reading, 0); len(b) > 0 || last {
		t.Errorf("the dropped log begins with %q", b)
	}
	d := p.draft(v, false)
	d.Write(make([]byte, 100))
	d.finish()
	p.commit(d, nil, v)
	if got := all(t, p); len(got) != 100+protection.StateHeader {
		t.Errorf("%d bytes", len(got))
	}
	if _, why, _ := p.keep(overfill, 0); why != "" || p.current != nil {
		t.Errorf("the drop was reported again: %q", why)
	}
	long := p.draft(v, false)
	if n, err := long.Write(make([]byte, 2000)); n != 2000 || err != nil || long.finish() {
		t.Errorf("a state above the limit: %d, %v", n, err)
	}
	long.discard()
}
