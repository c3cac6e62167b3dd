package core

import (
	"errors"
	"io"
	"testing"
)

// lastCode is MPI_ERR_LASTCODE in the ABI of MPI-5.
const lastCode = 0x3fff

// TestClassesHaveTheirOwnTexts checks that each class has a text of its own, by which package mpj names it, and a number
// that C programs may see.
func TestClassesHaveTheirOwnTexts(t *testing.T) {
	classes := make(map[string]Class)
	for c, text := range classTexts {
		if text == "" || c < 1 || c > lastCode {
			t.Errorf("class %d has the text %q", int(c), text)
		}
		if other, ok := classes[text]; ok {
			t.Errorf("classes %d and %d have the text %q", int(c), int(other), text)
		}
		classes[text] = c
	}
}

func TestErrorsNameWhatIsKnown(t *testing.T) {
	cases := []struct {
		err  *Error
		says string
	}{
		{Failf(ErrRank, "dest %d", 7), "invalid rank: dest 7"},
		{Wrap(ErrOther, io.EOF), "failed: EOF"},
		{&Error{Class: ErrTruncate, Call: "Irecv", Rank: 1, Index: 3, Detail: "8 bytes"}, "request 3: Irecv: at rank 1: message longer than the receive buffer: 8 bytes"},
	}
	for _, c := range cases {
		if got := c.err.Error(); got != c.says {
			t.Errorf("got %q, want %q", got, c.says)
		}
		if !errors.Is(c.err, c.err.Class) || c.err.Err != nil && !errors.Is(c.err, c.err.Err) {
			t.Errorf("%v is neither of its class nor of its cause", c.err)
		}
	}
}
