package channel

import (
	"runtime"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// Send sends the frames as Sender says. While it waits it sleeps on own, so no
// other goroutine may do so then.
func (s *ShmSender) Send(frames ...frame.Frame) error {
	for _, f := range frames {
		for wait := (patience{bell: s.own}); ; wait.pause() {
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

// Receive returns the next frame as Receiver says. While it waits it sleeps on
// own, so no other goroutine may do so then.
func (r *ShmReceiver) Receive(alloc func(frame.Header) []byte) (frame.Frame, error) {
	for wait := (patience{bell: r.own}); ; wait.pause() {
		wait.prepare()
		if f, ok, err := r.TryReceive(alloc); ok || err != nil {
			wait.end()
			return f, err
		}
	}
}

// A patience is how a blocked call waits between its looks at a ring.
type patience struct {
	bell  *Bell
	looks int
	armed bool
}

// What a call does before it sleeps, in looks at the ring. A look takes a few
// nanoseconds; spinning lasts about as long as falling asleep and waking up.
const (
	spinLooks  = 2000
	yieldLooks = 10
)

// prepare comes before each look.
func (p *patience) prepare() {
	if p.armed = p.looks >= spinLooks+yieldLooks; p.armed {
		p.bell.Arm()
	}
}

// pause comes after a look that found nothing.
func (p *patience) pause() {
	p.looks++
	switch {
	case p.armed:
		p.bell.Sleep()
		p.looks = 0
	case p.looks >= spinLooks:
		runtime.Gosched()
	}
}

// end comes after the last look.
func (p *patience) end() {
	if p.armed {
		p.bell.Disarm()
	}
}

// A watcher is the goroutine behind Broken, if anybody asked for it.
type watcher struct {
	once   sync.Once
	broken chan struct{}
}

// Broken is closed when the receiver closes. The first call starts a goroutine
// that blocks a thread until either end is closed: whoever polls does without
// and learns from TrySend.
func (s *ShmSender) Broken() <-chan struct{} {
	s.watch.once.Do(func() {
		s.watch.broken = make(chan struct{})
		go s.awaitGone() // until an end is closed
	})
	return s.watch.broken
}

func (s *ShmSender) awaitGone() {
	for s.control.gone.Load() == 0 {
		futexWait(&s.control.gone, 0)
	}
	close(s.watch.broken)
}

// Close tells the receiver that nothing follows. A TrySend or Send under way
// ends soon. The memory is unmapped after the last use.
func (s *ShmSender) Close() error {
	s.leave(senderGone)
	s.other.Ring()
	s.own.Disarm()
	s.watch.once.Do(func() {
		s.watch.broken = make(chan struct{})
		close(s.watch.broken)
	})
	<-s.watch.broken
	return nil
}

// Close tells the sender that nobody listens. A Receive under way ends soon.
// The memory is unmapped after the last use.
func (r *ShmReceiver) Close() error {
	r.leave(receiverGone)
	r.other.Ring()
	r.own.Disarm()
	return nil
}

// leave says that an end is closed.
func (r *ring) leave(who uint32) {
	r.control.gone.Or(who)
	futexWake(&r.control.gone)
}
