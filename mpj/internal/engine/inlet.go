package engine

import (
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An inlet is a channel from another process, which one goroutine reads.
type inlet struct {
	receiver channel.Receiver
	ended    chan struct{}
}

// Accept takes over a channel on which process from sends. A channel that from
// opened before is over then: what is left in it will come again.
func (e *Engine) Accept(from view.Process, r channel.Receiver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		r.Close()
		return
	}
	in, before := &inlet{r, make(chan struct{})}, e.inlets[from]
	e.inlets[from] = in
	e.running.Add(1)
	go e.read(from, in, before) // until the channel ends
}

func (e *Engine) read(from view.Process, in, before *inlet) {
	defer e.running.Done()
	defer close(in.ended)
	defer in.receiver.Close()
	if before != nil {
		before.receiver.Close()
		<-before.ended
	}
	for {
		f, err := in.receiver.Receive(place)
		if err != nil {
			return // from opens another one if it has more to say
		}
		if !e.receive(from, f) {
			return
		}
	}
}

// place returns where the payload of a frame goes.
func place(h channel.Header) []byte { return allocate(int(h.Size)) }

// receive gives the protocol a frame and reports whether the engine goes on.
func (e *Engine) receive(from view.Process, f channel.Frame) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	out, err := e.protocol.Receive(from, f)
	if err != nil {
		e.fail(protocolError(from, err))
		return false
	}
	e.apply(out)
	e.relieve()
	e.armTick()
	return true
}
