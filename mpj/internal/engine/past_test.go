package engine

import (
	"bytes"
	"os"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// log returns an empty log and its folder.
func log(t *testing.T, limit uint64) (*Past, string) {
	t.Helper()
	dir := t.TempDir()
	p, err := NewPast(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, dir
}

// all returns what p holds, read piece by piece.
func all(t *testing.T, p *Past) []byte {
	t.Helper()
	var read []byte
	for {
		piece, last := p.piece(uint64(len(read)))
		read = append(read, piece...)
		if last {
			return read
		}
		if len(piece) == 0 {
			t.Fatalf("nothing follows %d bytes", len(read))
		}
	}
}

func TestAPastIsReadWhereverItIs(t *testing.T) {
	p, dir := log(t, 1<<30)
	var want []byte
	for i := range 40 {
		m := protection.Message{Source: 1, Seq: uint64(i + 1), Payload: bytes.Repeat([]byte{byte(i)}, 100_000)}
		d := protection.Determinant{Point: protection.Point{Index: uint64(i)}, Outcome: []byte("outcome")}
		own := protection.Message{Source: 2, Seq: uint64(i + 1), Payload: []byte("stays here")}
		want = append(protection.AppendMessage(want, &m), m.Payload...)
		want = protection.AppendOutcome(want, &d)
		due, why := p.keep(protection.Output{Deliver: []protection.Message{m, own}, Decided: []protection.Determinant{d}}, 2)
		if why != "" {
			t.Fatal(why)
		}
		if due && i%7 != 4 { // else it has to wait
			p.write()
		} else {
			p.busy = false
		}
		if got := all(t, p); !bytes.Equal(got, want) {
			t.Fatalf("after %d records: %d bytes, want %d", 2*i+2, len(got), len(want))
		}
	}
	if p.written == 0 || len(p.tail) == 0 {
		t.Errorf("%d bytes in the file, %d in memory: want some in both", p.written, len(p.tail))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

func TestAPastThatIsTooLongIsLetGo(t *testing.T) {
	p, _ := log(t, 1000)
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, 600)}
	for i, want := range []bool{true, false, false} {
		_, why := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0)
		if (why == "") != (i != 1) {
			t.Errorf("message %d: %q", i, why)
		}
		if b, last := p.piece(0); (len(b) > 0 && last) != want {
			t.Errorf("message %d: %d bytes, last %v", i, len(b), last)
		}
	}
}

func TestAPastThatCannotBeWrittenIsLetGo(t *testing.T) {
	p, _ := log(t, 1<<30)
	p.file.Close()
	m := protection.Message{Source: 1, Seq: 1, Payload: make([]byte, pastTail)}
	if due, why := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0); !due || why != "" {
		t.Fatalf("due %v, %q", due, why)
	}
	p.write()
	if _, why := p.keep(protection.Output{Deliver: []protection.Message{m}}, 0); why == "" {
		t.Error("nobody is told")
	}
	if b, last := p.piece(0); len(b) > 0 || last {
		t.Errorf("there is still a piece of %d bytes", len(b))
	}
}

func TestAPieceBeyondTheEndIsNone(t *testing.T) {
	p, _ := log(t, 1000)
	if b, last := p.piece(0); len(b) > 0 || !last {
		t.Errorf("of nothing: %d bytes, last %v", len(b), last)
	}
	if b, last := p.piece(1); len(b) > 0 || last {
		t.Errorf("beyond: %d bytes, last %v", len(b), last)
	}
}
