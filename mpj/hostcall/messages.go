package hostcall

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// oneRank is the view before join.
var oneRank = view.New(1, 1)

// receive makes a call that returns the status of a message, at once or in the background.
func (p *Process) receive(a arguments, at words, call func() (engine.Status, error)) uint32 {
	if a.later() == 0 {
		s, err := call()
		at.setReceived(&s, err)
		return p.code(err)
	}
	s := new(engine.Status)
	return p.run(a.later(), func() (err error) {
		*s, err = call()
		return err
	}, func(err error) { at.setReceived(s, err) })
}

func (p *Process) rank(r int32) int {
	if r < 0 || int(r) >= p.ranks {
		panic(faultf("rank %d in a job of %d ranks", r, p.ranks))
	}
	return int(r)
}

// source returns r, which must be a rank or AnySource.
func (p *Process) source(r int32) int {
	if r == engine.AnySource {
		return engine.AnySource
	}
	return p.rank(r)
}

// setReceived sets the status of a receive that has returned err.
func (w words) setReceived(s *engine.Status, err error) {
	if err != nil {
		var long *engine.TruncateError
		if errors.As(err, &long) {
			*s = long.Status
		}
	}
	w.setStatus(*s)
}

func (p *Process) send(a arguments) uint32 {
	context, dest, tag := a.context(0), p.rank(a.i(1)), a.i(2)
	b, m := p.memory.bytes(a.u(3), a.u(4)), a.mode(5)
	if a.later() == 0 { // this path allocates nothing
		return p.code(p.engine.Send(context, dest, tag, b, m))
	}
	return p.run(a.later(), func() error { return p.engine.Send(context, dest, tag, b, m) }, nothing)
}

func (p *Process) isend(a arguments) uint32 {
	request := p.memory.words(a.u(6), 1)
	r, err := p.engine.Isend(a.context(0), p.rank(a.i(1)), a.i(2), p.memory.bytes(a.u(3), a.u(4)), a.mode(5))
	return p.begun(request, r, err)
}

// begun stores the handle of a started request, unless there is an error.
func (p *Process) begun(at words, r *engine.Request, err error) uint32 {
	if err == nil {
		at.set(0, p.requests.put(r))
	}
	return p.code(err)
}

func (p *Process) recv(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	b, at := p.memory.bytes(a.u(3), a.u(4)), p.memory.words(a.u(5), statusWords)
	if a.later() == 0 { // this path allocates nothing
		s, err := p.engine.Recv(context, source, tag, b)
		at.setReceived(&s, err)
		return p.code(err)
	}
	return p.receive(a, at, func() (engine.Status, error) { return p.engine.Recv(context, source, tag, b) })
}

func (p *Process) irecv(a arguments) uint32 {
	request := p.memory.words(a.u(5), 1)
	r, err := p.engine.Irecv(a.context(0), p.source(a.i(1)), a.i(2), p.memory.bytes(a.u(3), a.u(4)))
	return p.begun(request, r, err)
}

func (p *Process) recvWhole(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	handle, at := p.memory.words(a.u(3), 1), p.memory.words(a.u(4), statusWords)
	s, b := new(engine.Status), []byte(nil)
	return p.run(a.later(), func() (err error) {
		b, *s, err = p.engine.RecvWhole(context, source, tag)
		return err
	}, func(err error) {
		at.setStatus(*s)
		if err == nil {
			handle.set(0, p.keep(b))
		}
	})
}

func (p *Process) sendrecv(a arguments) uint32 {
	context, dest, sendTag, send := a.context(0), p.rank(a.i(1)), a.i(2), p.memory.bytes(a.u(3), a.u(4))
	source, recvTag, recv := p.source(a.i(5)), a.i(6), p.memory.bytes(a.u(7), a.u(8))
	return p.receive(a, p.memory.words(a.u(9), statusWords), func() (engine.Status, error) {
		return p.engine.Sendrecv(context, dest, sendTag, send, source, recvTag, recv)
	})
}

func (p *Process) swap(a arguments) uint32 {
	context, tag, dest, send := a.context(0), a.i(1), p.rank(a.i(2)), p.memory.bytes(a.u(3), a.u(4))
	source, recv := p.source(a.i(5)), p.memory.bytes(a.u(6), a.u(7))
	return p.receive(a, p.memory.words(a.u(8), statusWords), func() (engine.Status, error) {
		return p.engine.Swap(context, tag, dest, send, source, recv)
	})
}

// partWords is the size of a part, in words.
const partWords = 4 + statusWords

// parts reads an array of parts. The rank of a part must be a rank, because an exchange has no
// wildcards.
func (p *Process) parts(at, n uint32) (words, []engine.Part) {
	w := words(p.memory.array(at, n, 4*partWords))
	out := make([]engine.Part, n)
	for i := range out {
		one := w[4*partWords*i:]
		out[i] = engine.Part{Rank: p.rank(int32(one.get(0))), Bytes: p.memory.bytes(one.get(1), one.get(2))}
	}
	return w, out
}

func (p *Process) exchange(a arguments) uint32 {
	context, tag := a.context(0), a.i(1)
	_, out := p.parts(a.u(2), a.u(3))
	at, in := p.parts(a.u(4), a.u(5))
	return p.run(a.later(), func() error { return p.engine.Exchange(context, tag, out, in) }, func(err error) {
		if err != nil {
			return // some receives are still in progress
		}
		for i := range in {
			one := at[4*partWords*i:]
			one.set(3, p.code(in[i].Err))
			one[16:].setReceived(&in[i].Status, in[i].Err)
		}
	})
}

func (p *Process) probe(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	return p.receive(a, p.memory.words(a.u(3), statusWords), func() (engine.Status, error) { return p.engine.Probe(context, source, tag) })
}

func (p *Process) iprobe(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	return p.found(a, func() (s engine.Status, found bool, err error) { return p.engine.Iprobe(context, source, tag) }, present)
}

func (p *Process) probeUntil(a arguments) uint32 {
	inContext, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	ctx, cancel := p.background.bound(a.later())
	return p.found(a, func() (engine.Status, bool, error) {
		defer cancel()
		return p.engine.ProbeContext(ctx, inContext, source, tag)
	}, present)
}

// present is the value by which a probe reports a message that it leaves in its mailbox.
func present() uint32 { return 1 }

// found runs a probe that may find no message. If it finds one, it stores the value, else 0.
func (p *Process) found(a arguments, look func() (engine.Status, bool, error), value func() uint32) uint32 {
	at, status := p.memory.words(a.u(3), 1), p.memory.words(a.u(4), statusWords)
	var s engine.Status
	var found bool
	return p.run(a.later(), func() (err error) {
		s, found, err = look()
		return err
	}, func(error) {
		at.set(0, 0)
		status.setStatus(s)
		if found {
			at.set(0, value())
		}
	})
}

func (p *Process) mprobe(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	var m *engine.Matched
	return p.found(a, func() (s engine.Status, found bool, err error) {
		m, s, err = p.engine.Mprobe(context, source, tag)
		return s, err == nil, err
	}, func() uint32 { return p.messages.put(m) })
}

func (p *Process) improbe(a arguments) uint32 {
	context, source, tag := a.context(0), p.source(a.i(1)), a.i(2)
	var m *engine.Matched
	return p.found(a, func() (s engine.Status, found bool, err error) {
		m, s, found, err = p.engine.Improbe(context, source, tag)
		return s, found, err
	}, func() uint32 { return p.messages.put(m) })
}

func (p *Process) imrecv(a arguments) uint32 {
	m, request := p.messages.get(a.u(0)), p.memory.words(a.u(3), 1)
	r, err := p.engine.Imrecv(m, p.memory.bytes(a.u(1), a.u(2)))
	p.messages.drop(a.u(0))
	return p.begun(request, r, err)
}

func (p *Process) choose(a arguments) uint32 {
	context, mine, at := a.context(0), a[1], p.memory.words(a.u(2), 2)
	var out uint64
	return p.run(a.later(), func() (err error) {
		out, err = p.engine.Choose(context, func() uint64 { return mine })
		return err
	}, func(error) { at.set64(out) })
}

func (p *Process) wtime(a arguments) uint32 {
	at := p.memory.words(a.u(0), 2)
	var t float64
	return p.run(a.later(), func() error {
		t = p.engine.Wtime()
		return nil
	}, func(error) {
		at.set64(math.Float64bits(t))
		p.host.Told(t)
	})
}

func (p *Process) randomSeed(a arguments) uint32 {
	at := p.memory.words(a.u(0), 2)
	var seed uint64
	return p.run(a.later(), func() error {
		seed = p.engine.RandomSeed()
		return nil
	}, func(error) { at.set64(seed) })
}

func (p *Process) flush(a arguments) uint32 { return p.run(a.later(), p.engine.Flush, nothing) }

func (p *Process) unmatched(a arguments) uint32 {
	at, size := p.memory.words(a.u(0), 1), p.memory.words(a.u(1), 1)
	var b []byte
	for _, m := range p.engine.Unmatched() {
		for _, v := range []uint32{m.Context, uint32(m.Status.Source), uint32(m.Status.Tag), uint32(m.Status.Size)} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	at.set(0, p.keep(b))
	size.set(0, uint32(len(b)))
	return ok
}

func (p *Process) forget(a arguments) uint32 {
	p.engine.Forget(a.context(0))
	return 0
}

func (p *Process) abandon(a arguments) uint32 {
	p.engine.Abandon(a.context(0))
	return 0
}
