package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// TestInvalidMessagesAreRefused checks the class of each refused argument of a call that sends or receives, and that
// the error names the argument. Each rank calls with itself as partner.
func TestInvalidMessagesAreRefused(t *testing.T) {
	const std = engineapi.Standard
	one := make([]byte, 1)
	items := Buffer{Memory: one, Type: layout.Basic(1), Count: 1}
	cases := []struct {
		name  string
		call  func(w *Comm) error
		class Class
		says  string
	}{
		{"Send without a communicator", func(*Comm) error { return Send(nil, std, one, 0, 0) }, ErrComm, "which is nil"},
		{"Send", func(w *Comm) error { return Send(w, std, one, 2, 0) }, ErrRank, "dest 2, ranks are 0..1"},
		{"SendBuffer", func(w *Comm) error { return SendBuffer(w, std, items, 0, -1) }, ErrTag, "tag -1"},
		{"Recv", func(w *Comm) error { return second(Recv(w, one, 2, 0)) }, ErrRank, "source 2"},
		{"RecvBuffer", func(w *Comm) error { return second(RecvBuffer(w, items, 0, -2)) }, ErrTag, "tag -2"},
		{"RecvWhole", func(w *Comm) error { _, _, err := RecvWhole(w, 2, 0); return err }, ErrRank, "source 2"},
		{"Sendrecv to", func(w *Comm) error { return second(Sendrecv(w, one, 2, 0, one, 0, 0)) }, ErrRank, "dest 2"},
		{"Sendrecv from", func(w *Comm) error { return second(Sendrecv(w, one, 0, 0, one, 2, 0)) }, ErrRank, "source 2"},
		{"SendrecvBuffer", func(w *Comm) error { return second(SendrecvBuffer(w, items, 2, 0, items, 0, 0)) }, ErrRank, "dest 2"},
		{"SendrecvReplaceBuffer", func(w *Comm) error { return second(SendrecvReplaceBuffer(w, items, 0, 0, 2, 0)) }, ErrRank, "source 2"},
		{"Probe", func(w *Comm) error { return second(Probe(w, Undefined, 0)) }, ErrRank, "source -3"},
		{"Iprobe", func(w *Comm) error { _, _, err := Iprobe(w, 0, -4); return err }, ErrTag, "tag -4"},
		{"ProbeContext", func(w *Comm) error { return second(ProbeContext(t.Context(), w, 2, 0)) }, ErrRank, "source 2"},
		{"Mprobe", func(w *Comm) error { _, _, err := Mprobe(w, 2, 0); return err }, ErrRank, "source 2"},
		{"Improbe", func(w *Comm) error { _, _, _, err := Improbe(w, 2, 0); return err }, ErrRank, "source 2"},
		{"Imrecv of no message", func(*Comm) error { return second((*Message)(nil).Imrecv("Imrecv", one)) }, ErrRequest, "there is no message"},
		{"ImrecvBuffer of no message", func(*Comm) error { return second((*Message)(nil).ImrecvBuffer("Imrecv", items)) }, ErrRequest, "there is no message"},
		{"Isend", func(w *Comm) error { return second(Isend(w, "Isend", std, one, 2, 0)) }, ErrRank, "dest 2"},
		{"IsendBuffer", func(w *Comm) error { return second(IsendBuffer(w, "Isend", std, items, AnySource, 0)) }, ErrRank, "dest -1"},
		{"Irecv", func(w *Comm) error { return second(Irecv(w, "Irecv", one, 2, 0)) }, ErrRank, "source 2"},
		{"IrecvBuffer", func(w *Comm) error { return second(IrecvBuffer(w, "Irecv", items, 2, 0)) }, ErrRank, "source 2"},
		{"RecvContext", func(w *Comm) error { return second(RecvContext(t.Context(), w, "Recv", one, 2, 0)) }, ErrRank, "source 2"},
		{"SendInit", func(w *Comm) error { return second(SendInit(w, "SendInit", std, one, 2, 0)) }, ErrRank, "dest 2"},
		{"SendInitBuffer", func(w *Comm) error { return second(SendInitBuffer(w, "SendInit", items, 2, 0)) }, ErrRank, "dest 2"},
		{"BsendInit", func(w *Comm) error { return second(BsendInit(w, "BsendInit", one, 2, 0)) }, ErrRank, "dest 2"},
		{"RecvInit", func(w *Comm) error { return second(RecvInit(w, "RecvInit", one, 2, 0)) }, ErrRank, "source 2"},
		{"RecvInitBuffer", func(w *Comm) error { return second(RecvInitBuffer(w, "RecvInit", items, 2, 0)) }, ErrRank, "source 2"},
		{"Start of no request", func(*Comm) error { return (*Request)(nil).Start() }, ErrRequest, "the request is not persistent"},
		{"Start of a request that is not persistent", func(w *Comm) error { return startOf(Irecv(w, "Irecv", one, ProcNull, 0)) }, ErrRequest, "is not persistent"},
		{"Start of an active request", startTwice, ErrRequest, "the request of RecvInit is active"},
		{"Start of a freed request", startFreed, ErrRequest, "the request of RecvInit was freed"},
		{"Bsend", func(w *Comm) error { return Bsend(w, one, 2, 0) }, ErrRank, "dest 2"},
		{"Ibsend", func(w *Comm) error { return second(Ibsend(w, "Ibsend", one, 2, 0)) }, ErrRank, "dest 2"},
		{"Bsend without a buffer", func(w *Comm) error { return Bsend(w, one, 0, 0) }, ErrBuffer, "needs 65 bytes, 0 of 0 attached bytes are free"},
		{"a buffer of negative size", func(w *Comm) error { return AttachBuffer(w, -1) }, ErrArg, "size -1"},
		{"no buffer to detach", func(w *Comm) error { return second(DetachBuffer(w)) }, ErrBuffer, "no buffer is attached"},
	}
	inWorld(t, 2, func(world *Comm) error {
		for _, c := range cases {
			if err := c.call(world); !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
				return unexpected(err, "%s: want class %d and %q", c.name, c.class, c.says)
			}
		}
		if n, pending := world.Process().Active(), world.Process().Pending(); n != 0 || len(pending) != 0 {
			return fmt.Errorf("%d requests are in progress after refused calls: %q", n, pending)
		}
		return ring(world, 0, 1)
	})
}

// startOf starts r, which is a result of a call, and returns the error after r is complete.
func startOf(r *Request, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(r.Start(), second(r.Wait()))
}

func startTwice(w *Comm) error {
	r, err := RecvInit(w, "RecvInit", nil, ProcNull, 0)
	if err != nil {
		return err
	}
	return errors.Join(r.Start(), r.Start(), second(r.Wait()))
}

func startFreed(w *Comm) error {
	r, err := RecvInit(w, "RecvInit", nil, 0, 0)
	if err != nil {
		return err
	}
	r.Free()
	return r.Start()
}

// TestRequestsAreDescribed checks the descriptions of active requests, and that complete and freed requests have none.
func TestRequestsAreDescribed(t *testing.T) {
	inWorld(t, 1, func(world *Comm) error {
		b := make([]byte, 4)
		receive, err := Irecv(world, "Irecv", b, AnySource, AnyTag)
		if err != nil {
			return err
		}
		send, err := SendInit(world, "SendInit", engineapi.Standard, []byte("four"), 0, 7)
		if err != nil {
			return err
		}
		if err := send.Start(); err != nil {
			return err
		}
		pending := world.Process().Pending()
		want := []string{
			"Irecv(source AnySource, tag AnyTag, room for 4 bytes) of world at message_test.go:",
			"SendInit(dest 0, tag 7, 4 bytes) of world at message_test.go:",
		}
		for i, w := range want {
			if len(pending) != len(want) || !strings.HasPrefix(pending[i], w) {
				return fmt.Errorf("got %q, want %q", pending, want)
			}
		}
		s, err := receive.Wait()
		send.Free()
		if err != nil || s != (Status{Source: 0, Tag: 7, Size: 4}) || string(b) != "four" {
			return unexpected(err, "got %+v, %q", s, b)
		}
		if pending := world.Process().Pending(); len(pending) > 0 || world.Process().Active() != 0 {
			return fmt.Errorf("still described: %q", pending)
		}
		return second(send.Wait())
	})
}

// TestErrorsOfSeveralRequestsHaveTheirIndex checks that a call with requests of two processes fails, with the index of
// the request of the other process.
func TestErrorsOfSeveralRequestsHaveTheirIndex(t *testing.T) {
	theirs, over := make(chan *Request, 1), make(chan bool)
	inWorld(t, 2, func(world *Comm) error {
		r, err := Irecv(world, "Irecv", nil, 1-world.Rank(), 0)
		if err != nil {
			return err
		}
		if world.Rank() == 1 {
			theirs <- r
			<-over
		} else {
			_, _, err := Waitany([]*Request{nil, r, <-theirs})
			close(over)
			var own *Error
			if !errors.As(err, &own) || own.Class != ErrRequest || own.Index != 2 || own.Comm != world {
				return unexpected(err, "want an error of request 2")
			}
		}
		err = Send(world, engineapi.Standard, nil, 1-world.Rank(), 0)
		return errors.Join(err, second(r.Wait()))
	})
}

// TestErrorsOfRequestsNameTheirCall checks that Wait returns an error with the name of the call that made the request.
func TestErrorsOfRequestsNameTheirCall(t *testing.T) {
	inWorld(t, 1, func(world *Comm) error {
		if err := Send(world, engineapi.Standard, []byte("long"), 0, 0); err != nil {
			return err
		}
		m, s, err := Mprobe(world, 0, AnyTag)
		if err != nil || s.Size != 4 {
			return unexpected(err, "Mprobe: got %+v", s)
		}
		r, err := m.Imrecv("Mrecv", nil)
		if err != nil {
			return err
		}
		var own *Error
		if _, err := r.Wait(); !errors.As(err, &own) || own.Call != "Mrecv" || own.Class != ErrTruncate || own.Rank != 0 {
			return unexpected(err, "want a truncated message of Mrecv")
		}
		if _, err := m.Imrecv("Mrecv", nil); !errors.Is(err, ErrRequest) {
			return unexpected(err, "a second receive")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = RecvContext(ctx, world, "RecvContext", nil, 0, 0)
		if !errors.Is(err, ErrContext) || !errors.Is(err, context.Canceled) {
			return unexpected(err, "want the end of the context")
		}
		return nil
	})
}

// TestBufferedMessagesTakeSpace checks that the attached buffer bounds the messages in transit.
func TestBufferedMessagesTakeSpace(t *testing.T) {
	inWorld(t, 1, func(world *Comm) error {
		if err := AttachBuffer(world, 2*BsendOverhead); err != nil {
			return err
		}
		if err := AttachBuffer(world, 1); !errors.Is(err, ErrBuffer) {
			return unexpected(err, "a second buffer")
		}
		if err := Bsend(world, make([]byte, BsendOverhead+1), 0, 0); !errors.Is(err, ErrBuffer) {
			return unexpected(err, "a message that is too long")
		}
		b := []byte("sent")
		if err := Bsend(world, b, 0, 0); err != nil {
			return err
		}
		copy(b, "next") // the message is a copy
		if _, err := Recv(world, b, 0, 0); err != nil || string(b) != "sent" {
			return unexpected(err, "got %q", b)
		}
		size, err := DetachBuffer(world)
		if err != nil || size != 2*BsendOverhead || world.Process().BufferInUse() {
			return unexpected(err, "DetachBuffer: got %d", size)
		}
		return nil
	})
}
