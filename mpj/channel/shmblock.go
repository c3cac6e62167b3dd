package channel

import (
	"runtime"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// Send implements Sender. While it waits it sleeps on own, so no other goroutine may sleep on that
// bell at the same time.
func (s *ShmSender) Send(frames ...frame.Frame) error {
	for _, f := range frames {
		for wait := (backoff{bell: s.own}); ; wait.pause() {
			wait.prepare()
			done, err := s.TrySend(f)
			if err != nil {
				wait.end()
				return err
			}
			if done {
				wait.end()
				break
			}
		}
	}
	return nil
}

// Receive implements Receiver. While it waits it sleeps on own, so no other goroutine may sleep on
// that bell at the same time.
func (r *ShmReceiver) Receive(alloc func(frame.Header) []byte) (frame.Frame, error) {
	for wait := (backoff{bell: r.own}); ; wait.pause() {
		wait.prepare()
		if f, ok, err := r.TryReceive(alloc); ok || err != nil {
			wait.end()
			return f, err
		}
	}
}

// A backoff determines how a blocked call waits between its looks at a ring.
type backoff struct {
	bell  *Bell
	looks int
	armed bool
}

// The phases of waiting before sleep, in looks at the ring. A look takes a few nanoseconds;
// spinning lasts about as long as falling asleep and waking up.
const (
	spinLooks  = 2000
	yieldLooks = 10
)

// prepare is called before each look.
func (p *backoff) prepare() {
	if p.armed = p.looks >= spinLooks+yieldLooks; p.armed {
		p.bell.Arm()
	}
}

// pause is called after an unsuccessful look.
func (p *backoff) pause() {
	p.looks++
	switch {
	case p.armed:
		p.bell.Sleep()
		p.looks = 0
	case p.looks >= spinLooks:
		runtime.Gosched()
	}
}

// end is called after the last look.
func (p *backoff) end() {
	if p.armed {
		p.bell.Disarm()
	}
}

// A watcher is the goroutine that closes the channel of Broken. It is started on demand.
type watcher struct {
	once   sync.Once
	broken chan struct{}
}

// Broken is closed when the receiver closes. The first call starts a goroutine that blocks a thread
// until either end is closed. Callers that poll do not need Broken, because TrySend returns an
// error.
func (s *ShmSender) Broken() <-chan struct{} {
	s.watch.once.Do(func() {
		s.watch.broken = make(chan struct{})
		go s.awaitGone() // ends when an end is closed
	})
	return s.watch.broken
}

func (s *ShmSender) awaitGone() {
	for s.control.gone.Load() == 0 {
		futexWait(&s.control.gone, 0)
	}
	close(s.watch.broken)
}

// Close tells the receiver that no more frames follow. A concurrent TrySend or Send ends soon. The
// memory is unmapped after the last use.
func (s *ShmSender) Close() error {
	s.leave(senderGone)
	s.other.ring()
	s.own.Disarm()
	s.watch.once.Do(func() {
		s.watch.broken = make(chan struct{})
		close(s.watch.broken)
	})
	<-s.watch.broken
	return nil
}

// Close tells the sender that the receiver has closed. A concurrent Receive ends soon. The memory is
// unmapped after the last use.
func (r *ShmReceiver) Close() error {
	r.leave(receiverGone)
	r.other.ring()
	r.own.Disarm()
	return nil
}

// leave marks an end as closed.
func (r *ring) leave(who uint32) {
	r.control.gone.Or(who)
	futexWake(&r.control.gone)
}
