package command

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

func TestInterruptedOutputDoesNotBlock(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		o := NewOutput(w)
		ended := make(chan error, 1)
		go func() { _, err := o.Write([]byte("unread")); ended <- err }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("a write returned %v before the interrupt", err)
		default:
		}
		o.Interrupt()
		o.Interrupt()
		if err := <-ended; !errors.Is(err, ErrUnread) {
			t.Errorf("got %v, want %v", err, ErrUnread)
		}
		if _, err := o.Write([]byte("x")); !errors.Is(err, ErrUnread) {
			t.Errorf("the next write: got %v, want %v", err, ErrUnread)
		}
		r.Close()
	})
}

func TestInterruptedOutputIsWrittenWhileItIsRead(t *testing.T) {
	var b bytes.Buffer
	o := NewOutput(&b)
	o.Interrupt()
	if n, err := o.Write([]byte("read")); n != 4 || err != nil || b.String() != "read" {
		t.Errorf("got %d, %v and %q", n, err, b.String())
	}
}
