package core

import (
	"bytes"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// column returns the second column of a matrix of bytes with the given rows of four.
func column(t *testing.T, rows int) Buffer {
	t.Helper()
	l, err := Vector(rows, 1, 4, layout.Basic(1))
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]byte, 4*rows)
	for i := range memory {
		memory[i] = byte(i)
	}
	return Buffer{Memory: memory, Type: l, Origin: 1, Count: 1}
}

// TestContiguousDataIsNotCopied checks that data without gaps is sent and received in place.
func TestContiguousDataIsNotCopied(t *testing.T) {
	memory := []byte("abcdefgh")
	b := Buffer{Memory: memory, Type: layout.Basic(2), Origin: 2, Count: 2}
	sent, s := b.Message()
	room, r := b.Room()
	target, u := b.Target()
	for _, run := range [][]byte{sent, room, target} {
		if string(run) != "cdef" || &run[0] != &memory[2] || cap(run) != 4 {
			t.Errorf("got %q with capacity %d, want the bytes in place", run, cap(run))
		}
	}
	if s != nil || r != nil || u != nil {
		t.Error("contiguous data has a Scratch or an Unpacking")
	}
	s.Put()
	u.Finish(4)
	u.Restart()
	if empty, ok := (Buffer{Type: layout.Basic(2)}).Run(); empty != nil || !ok {
		t.Errorf("no items: got %v, %v", empty, ok)
	}
}

// TestDataWithGapsIsPacked checks that data with gaps is sent without the gaps, and that a shorter message fills only
// the first items.
func TestDataWithGapsIsPacked(t *testing.T) {
	b := column(t, 3)
	sent, s := b.Message()
	if !bytes.Equal(sent, []byte{1, 5, 9}) || b.Size() != 3 {
		t.Errorf("got %v, size %d", sent, b.Size())
	}
	s.Put()
	room, s := b.Room()
	if len(room) != 3 {
		t.Errorf("got room for %d bytes, want 3", len(room))
	}
	copy(room, "xy")
	b.Unpack(room[:2])
	s.Put()
	if want := []byte{'x', 'y', 9}; !bytes.Equal(b.Append(nil), want) {
		t.Errorf("got %v, want %v", b.Append(nil), want)
	}
}

// TestUnpackingHappensOnce checks that a receive unpacks its message once, and again after a restart.
func TestUnpackingHappensOnce(t *testing.T) {
	b := column(t, 2)
	packed, u := b.Target()
	steps := []struct {
		message string
		restart bool
		want    string
	}{
		{"ab", false, "ab"},
		{"cd", false, "ab"},
		{"ef", true, "ef"},
	}
	for _, s := range steps {
		if s.restart {
			u.Restart()
		}
		copy(packed, s.message)
		u.Finish(len(s.message))
		if got := string(b.Append(nil)); got != s.want {
			t.Errorf("after %q: got %q, want %q", s.message, got, s.want)
		}
	}
}

// TestLongScratchIsNotKept checks that a long message does not keep its memory for later calls.
func TestLongScratchIsNotKept(t *testing.T) {
	_, s := column(t, 2*maxScratch).Message()
	s.Put()
	if next := scratches.Get().(*Scratch); next == s {
		t.Error("the memory of a long message was kept")
	}
}

func TestStatusCountsItems(t *testing.T) {
	pair, err := layout.Contiguous(2, layout.Basic(4))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ size, count, elements int }{
		{0, 0, 0}, {16, 2, 4}, {12, Undefined, 3}, {6, Undefined, Undefined},
	} {
		s := Status{Size: c.size}
		if s.Count(pair) != c.count || s.Elements(pair) != c.elements {
			t.Errorf("%d bytes: got %d items, %d elements, want %d, %d", c.size, s.Count(pair), s.Elements(pair), c.count, c.elements)
		}
	}
}
