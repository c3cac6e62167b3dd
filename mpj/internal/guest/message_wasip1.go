package guest

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// Send and Recv are the most frequent calls. With a single goroutine, they allocate nothing and
// call few functions. A call within a module costs as much as about ten native ones, and an
// allocation more than all the host's work for a short message.

// Send sends payload, and returns when payload may be reused.
func (e *Engine) Send(context uint32, dest int, tag int32, payload []byte, mode engineapi.Mode) error {
	if !e.host.alone() {
		return e.sendInBackground(context, dest, tag, payload, mode)
	}
	if code := hostSend(context, int32(dest), tag, address(payload), uint32(len(payload)), uint32(mode), 0); code != codeOK {
		return e.host.failed(code, textOf(code))
	}
	return nil
}

func (e *Engine) sendInBackground(context uint32, dest int, tag int32, payload []byte, mode engineapi.Mode) error {
	code, text := e.host.callInBackground(func(later uint32) int32 {
		return hostSend(context, int32(dest), tag, address(payload), uint32(len(payload)), uint32(mode), later)
	}, nil)
	return e.host.failed(code, text)
}

// Recv waits for a message and receives it into buf.
func (e *Engine) Recv(context uint32, source int, tag int32, buf []byte) (engineapi.Status, error) {
	if !e.host.alone() {
		return e.recvInBackground(context, source, tag, buf)
	}
	s := &e.status
	code := hostRecv(context, int32(source), tag, address(buf), uint32(len(buf)), unsafe.Pointer(s), 0)
	if code != codeOK {
		return e.host.received(s, len(buf), code, textOf(code))
	}
	return engineapi.Status{Source: int(s.source), Tag: s.tag, Size: int(s.size)}, nil
}

func (e *Engine) recvInBackground(context uint32, source int, tag int32, buf []byte) (engineapi.Status, error) {
	var s status
	code, text := e.host.callInBackground(func(later uint32) int32 {
		return hostRecv(context, int32(source), tag, address(buf), uint32(len(buf)), unsafe.Pointer(&s), later)
	}, nil)
	return e.host.received(&s, len(buf), code, text)
}

// RecvWhole receives a message of any length.
func (e *Engine) RecvWhole(context uint32, source int, tag int32) ([]byte, engineapi.Status, error) {
	var s status
	var bytes uint32
	code, text := e.host.call(func(later uint32) int32 {
		return hostRecvWhole(context, int32(source), tag, unsafe.Pointer(&bytes), unsafe.Pointer(&s), later)
	})
	if err := e.host.failed(code, text); err != nil {
		return nil, engineapi.Status{}, err
	}
	return taken(bytes, s.size), s.status(), nil
}

// Sendrecv sends to one rank and, at the same time, receives from another.
func (e *Engine) Sendrecv(context uint32, dest int, sendTag int32, send []byte, source int, recvTag int32, recv []byte) (engineapi.Status, error) {
	if e.host.alone() {
		code := hostSendrecv(context, int32(dest), sendTag, address(send), uint32(len(send)),
			int32(source), recvTag, address(recv), uint32(len(recv)), unsafe.Pointer(&e.status), 0)
		return e.host.received(&e.status, len(recv), code, textOf(code))
	}
	var s status
	code, text := e.host.call(func(later uint32) int32 {
		return hostSendrecv(context, int32(dest), sendTag, address(send), uint32(len(send)),
			int32(source), recvTag, address(recv), uint32(len(recv)), unsafe.Pointer(&s), later)
	})
	return e.host.received(&s, len(recv), code, text)
}

// Swap is Sendrecv within a collective.
func (e *Engine) Swap(context uint32, tag int32, dest int, send []byte, source int, recv []byte) (engineapi.Status, error) {
	if e.host.alone() {
		code := hostSwap(context, tag, int32(dest), address(send), uint32(len(send)),
			int32(source), address(recv), uint32(len(recv)), unsafe.Pointer(&e.status), 0)
		return e.host.received(&e.status, len(recv), code, textOf(code))
	}
	var s status
	code, text := e.host.call(func(later uint32) int32 {
		return hostSwap(context, tag, int32(dest), address(send), uint32(len(send)),
			int32(source), address(recv), uint32(len(recv)), unsafe.Pointer(&s), later)
	})
	return e.host.received(&s, len(recv), code, text)
}

// A Part is one message of Exchange, to or from a rank.
type Part struct {
	Rank  int
	Bytes []byte
	// Result of a receive, valid after Exchange has returned.
	Status engineapi.Status
	Err    error
}

// A part is a Part in the host's format.
type part struct {
	rank      int32
	buf, size uint32
	code      int32
	status    status
}

func partsOf(ps []Part) []part {
	out := make([]part, len(ps))
	for i, p := range ps {
		out[i] = part{rank: int32(p.Rank), buf: where(p.Bytes), size: uint32(len(p.Bytes))}
	}
	return out
}

// Exchange sends one message to each rank of out and, at the same time, receives one from each rank
// of in.
func (e *Engine) Exchange(context uint32, tag int32, out, in []Part) error {
	outs, ins := partsOf(out), partsOf(in)
	code, text := e.host.call(func(later uint32) int32 {
		return hostExchange(context, tag, unsafe.Pointer(unsafe.SliceData(outs)), uint32(len(outs)),
			unsafe.Pointer(unsafe.SliceData(ins)), uint32(len(ins)), later)
	})
	runtime.KeepAlive(out) // outs and ins hold no pointers to the buffers
	runtime.KeepAlive(in)
	if err := e.host.failed(code, text); err != nil {
		return err
	}
	for i := range in {
		in[i].Status, in[i].Err = e.host.received(&ins[i].status, len(in[i].Bytes), ins[i].code, "the message did not arrive")
	}
	return nil
}

// Probe waits for a message that a receive would take, and returns its status.
func (e *Engine) Probe(context uint32, source int, tag int32) (engineapi.Status, error) {
	var s status
	code, text := e.host.call(func(later uint32) int32 {
		return hostProbe(context, int32(source), tag, unsafe.Pointer(&s), later)
	})
	return e.host.received(&s, 0, code, text)
}

// Iprobe returns the status of the message that Probe would return now, if there is one.
func (e *Engine) Iprobe(context uint32, source int, tag int32) (engineapi.Status, bool, error) {
	var s status
	var found uint32
	code, text := e.host.call(func(later uint32) int32 {
		return hostIprobe(context, int32(source), tag, unsafe.Pointer(&found), unsafe.Pointer(&s), later)
	})
	return s.status(), found != 0, e.host.failed(code, text)
}

// ProbeContext is Probe with a context: when ctx ends, it returns false.
func (e *Engine) ProbeContext(ctx context.Context, inContext uint32, source int, tag int32) (engineapi.Status, bool, error) {
	var s status
	var found uint32
	code, text := e.host.callUntil(ctx, func(later uint32) int32 {
		return hostProbeUntil(inContext, int32(source), tag, unsafe.Pointer(&found), unsafe.Pointer(&s), later)
	})
	return s.status(), found != 0, e.host.failed(code, text)
}

// A Matched is a message that a probe has removed from its mailbox. Only Imrecv can receive it,
// once.
type Matched struct{ handle uint32 }

// Mprobe waits for the message that a receive would take, and takes it.
func (e *Engine) Mprobe(context uint32, source int, tag int32) (*Matched, engineapi.Status, error) {
	var s status
	m := new(Matched)
	code, text := e.host.call(func(later uint32) int32 {
		return hostMprobe(context, int32(source), tag, unsafe.Pointer(&m.handle), unsafe.Pointer(&s), later)
	})
	return m, s.status(), e.host.failed(code, text)
}

// Improbe is the nonblocking form of Mprobe: ok reports whether there was a message.
func (e *Engine) Improbe(context uint32, source int, tag int32) (m *Matched, _ engineapi.Status, ok bool, _ error) {
	var s status
	m = new(Matched)
	code, text := e.host.call(func(later uint32) int32 {
		return hostImprobe(context, int32(source), tag, unsafe.Pointer(&m.handle), unsafe.Pointer(&s), later)
	})
	return m, s.status(), m.handle != 0, e.host.failed(code, text)
}
