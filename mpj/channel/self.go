package channel

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// Self returns the two ends of a channel within this process. Send passes its frames to the receiver
// one by one, and returns when the receiver has copied all of them. A frame arrives whole or not at
// all, even if an end closes meanwhile.
func Self() (Sender, Receiver) {
	s := &self{broken: make(chan struct{})}
	s.changed.L = &s.mu
	return selfSender{s}, selfReceiver{s}
}

type self struct {
	mu       sync.Mutex
	changed  sync.Cond
	frames   []frame.Frame // frames of the current Send that were not received yet
	taking   bool          // the receiver copies frames[0] without holding mu
	finished bool          // the sender closed
	gone     bool          // the receiver closed
	broken   chan struct{}
}

type (
	selfSender   struct{ *self }
	selfReceiver struct{ *self }
)

func (s selfSender) Send(frames ...frame.Frame) error {
	for _, f := range frames {
		if uint64(len(f.Payload)) != f.Size || f.Size > frame.MaxPayload {
			return fmt.Errorf("channel: frame with a payload of %d bytes has size %d, at most %d are allowed", len(f.Payload), f.Size, uint64(frame.MaxPayload))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = frames
	s.changed.Broadcast()
	for s.taking || len(s.frames) > 0 && !s.gone && !s.finished {
		s.changed.Wait()
	}
	left := len(s.frames)
	s.frames = nil
	if left > 0 || s.gone || s.finished {
		return fmt.Errorf("channel: send: %w", net.ErrClosed)
	}
	return nil
}

func (s selfSender) Broken() <-chan struct{} { return s.broken }

func (s selfSender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.changed.Broadcast()
	return nil
}

func (r selfReceiver) Receive(alloc func(frame.Header) []byte) (frame.Frame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.frames) == 0 && !r.gone && !r.finished {
		r.changed.Wait()
	}
	switch {
	case r.gone:
		return frame.Frame{}, fmt.Errorf("channel: receive: %w", net.ErrClosed)
	case r.finished:
		return frame.Frame{}, io.EOF
	}
	f := r.frames[0]
	r.taking = true
	r.mu.Unlock()
	payload := alloc(f.Header)
	copy(payload, f.Payload)
	r.mu.Lock()
	r.taking = false
	r.frames = r.frames[1:]
	r.changed.Broadcast()
	return frame.Frame{Header: f.Header, Payload: payload}, nil
}

func (r selfReceiver) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone {
		r.gone = true
		close(r.broken)
		r.changed.Broadcast()
	}
	return nil
}
