package hostcall

import (
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// request returns the request with handle h.
func (p *Process) request(h uint32) *engine.Request {
	if h == 0 {
		return p.done
	}
	return p.requests.get(h)
}

// list reads an array of handles.
func (p *Process) list(at, n uint32) []*engine.Request {
	w := words(p.memory.array(at, n, 4))
	rs := make([]*engine.Request, n)
	for i := range rs {
		rs[i] = p.request(w.get(i))
	}
	return rs
}

// wait waits for a request and releases its handle. If the engine has ended, it keeps the handle,
// because another call may still wait for the request or finish it.
func (p *Process) wait(a arguments) uint32 {
	h := a.u(0)
	r, at := p.request(h), p.memory.words(a.u(1), statusWords)
	s := new(engine.Status)
	return p.run(a.later(), func() (err error) {
		*s, err = p.engine.Wait(r)
		return err
	}, func(err error) {
		at.setReceived(s, err)
		ended := err != nil && p.engine.Context().Err() != nil
		if h != 0 && !ended && p.requests.things[h-1] == r { // another wait may have released it
			p.requests.drop(h)
		}
	})
}

func (p *Process) cancelRequest(a arguments) uint32 {
	return p.code(p.engine.Cancel(p.request(a.u(0))))
}

func (p *Process) begin(arguments) uint32 { return p.requests.put(p.engine.Begin()) }

func (p *Process) finish(a arguments) uint32 {
	p.engine.Finish(p.requests.get(a.u(0)), engine.Status{}, nil)
	return 0
}

// one returns the function for a call that finds at most one of several requests.
func one(find func(*engine.Engine, []*engine.Request) (int, error)) func(*Process, arguments) uint32 {
	return func(p *Process, a arguments) uint32 {
		rs, at := p.list(a.u(0), a.u(1)), p.memory.words(a.u(2), 1)
		index := -1
		return p.run(a.later(), func() (err error) {
			index, err = find(p.engine, rs)
			return err
		}, func(error) { at.set(0, uint32(index)) })
	}
}

// some returns the function for a call that may find several requests.
func some(find func(*engine.Engine, []*engine.Request) ([]int, error)) func(*Process, arguments) uint32 {
	return func(p *Process, a arguments) uint32 {
		rs, out, count := p.list(a.u(0), a.u(1)), words(p.memory.array(a.u(2), a.u(1), 4)), p.memory.words(a.u(3), 1)
		var indices []int
		return p.run(a.later(), func() (err error) {
			indices, err = find(p.engine, rs)
			return err
		}, func(error) {
			for i, index := range indices[:min(len(indices), len(rs))] {
				out.set(i, uint32(index))
			}
			count.set(0, uint32(min(len(indices), len(rs))))
		})
	}
}

func (p *Process) testall(a arguments) uint32 {
	rs, at := p.list(a.u(0), a.u(1)), p.memory.words(a.u(2), 1)
	var done bool
	return p.run(a.later(), func() (err error) {
		done, err = p.engine.Testall(rs)
		return err
	}, func(error) { at.setBool(done) })
}

func (p *Process) waitUntil(a arguments) uint32 {
	r, at := p.request(a.u(0)), p.memory.words(a.u(1), 1)
	ctx, cancel := p.background.bound(a.later())
	var done bool
	return p.run(a.later(), func() (err error) {
		defer cancel()
		done, err = p.engine.WaitContext(ctx, r)
		return err
	}, func(error) { at.setBool(done) })
}
