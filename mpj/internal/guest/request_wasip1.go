package guest

import (
	"context"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// A Request is an operation in progress: a send, a receive, or an operation of the caller.
type Request struct {
	handle    uint32 // handle at the host; 0 once the outcome is known
	buf       []byte // buffer that the host uses until then
	operation bool   // completed by Finish
	status    engineapi.Status
	err       error
}

// begun returns the request that the host has started, or its error.
func (e *Engine) begun(r *Request, code int32) (*Request, error) {
	if code != codeOK {
		return nil, e.host.failed(code, textOf(code))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.underWay[r] = struct{}{}
	return r, nil
}

// ended releases the buffer of a request that the host has completed.
func (e *Engine) ended(r *Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.underWay, r)
	r.buf = nil
}

// Isend is the nonblocking form of Send: payload belongs to the engine until the request is
// complete.
func (e *Engine) Isend(context uint32, dest int, tag int32, payload []byte, mode engineapi.Mode) (*Request, error) {
	r := &Request{buf: payload}
	return e.begun(r, hostIsend(context, int32(dest), tag, address(payload), uint32(len(payload)), uint32(mode), unsafe.Pointer(&r.handle)))
}

// Irecv posts a receive into buf.
func (e *Engine) Irecv(context uint32, source int, tag int32, buf []byte) (*Request, error) {
	r := &Request{buf: buf}
	return e.begun(r, hostIrecv(context, int32(source), tag, address(buf), uint32(len(buf)), unsafe.Pointer(&r.handle)))
}

// Imrecv receives a matched message into buf.
func (e *Engine) Imrecv(m *Matched, buf []byte) (*Request, error) {
	r := &Request{buf: buf}
	return e.begun(r, hostImrecv(m.handle, address(buf), uint32(len(buf)), unsafe.Pointer(&r.handle)))
}

// Begin returns a request that the caller completes with Finish.
func (e *Engine) Begin() *Request { return &Request{handle: hostBegin(), operation: true} }

// Finish completes a request made by Begin.
func (e *Engine) Finish(r *Request, s engineapi.Status, err error) {
	r.status, r.err = s, err
	hostFinish(r.handle)
}

// Cancel cancels a receive that has not matched.
func (e *Engine) Cancel(r *Request) error {
	code := hostCancel(r.handle)
	return e.host.failed(code, textOf(code))
}

// Wait waits until r is complete and returns its result. Wait may be called repeatedly.
func (e *Engine) Wait(r *Request) (engineapi.Status, error) {
	if r.handle == 0 {
		return r.status, r.err
	}
	var s status
	code, text := e.host.call(func(later uint32) int32 { return hostWait(r.handle, unsafe.Pointer(&s), later) })
	if code == codeClosed || code == codeOther && e.ctx.Err() != nil {
		return engineapi.Status{}, e.host.failed(code, text) // every later call also fails
	}
	if r.handle != 0 {
		r.handle = 0
		if !r.operation {
			r.status, r.err = e.host.received(&s, len(r.buf), code, text)
		}
		e.ended(r)
	}
	return r.status, r.err
}

// handles returns the host's handles of the requests, as an array that the host can read, and their number.
func handles(rs []*Request) (unsafe.Pointer, uint32) {
	out := make([]uint32, len(rs))
	for i, r := range rs {
		out[i] = r.handle
	}
	return unsafe.Pointer(unsafe.SliceData(out)), uint32(len(out))
}

// Waitany waits until one of the requests is complete and returns its index.
func (e *Engine) Waitany(rs []*Request) (int, error) { return e.one(hostWaitany, rs) }

// Testany returns the index of a completed request, or -1.
func (e *Engine) Testany(rs []*Request) (int, error) { return e.one(hostTestany, rs) }

func (e *Engine) one(f func(requests unsafe.Pointer, n uint32, index unsafe.Pointer, later uint32) int32, rs []*Request) (int, error) {
	list, n := handles(rs)
	index := int32(-1)
	code, text := e.host.call(func(later uint32) int32 { return f(list, n, unsafe.Pointer(&index), later) })
	return int(index), e.host.failed(code, text)
}

// Waitsome waits until at least one of the requests is complete and returns the indices of the
// completed ones.
func (e *Engine) Waitsome(rs []*Request) ([]int, error) { return e.some(hostWaitsome, rs) }

// Testsome returns the indices of the completed requests.
func (e *Engine) Testsome(rs []*Request) ([]int, error) { return e.some(hostTestsome, rs) }

func (e *Engine) some(f func(requests unsafe.Pointer, n uint32, indices, count unsafe.Pointer, later uint32) int32, rs []*Request) ([]int, error) {
	list, n := handles(rs)
	indices, count := make([]uint32, n), uint32(0)
	code, text := e.host.call(func(later uint32) int32 {
		return f(list, n, unsafe.Pointer(unsafe.SliceData(indices)), unsafe.Pointer(&count), later)
	})
	out := make([]int, 0, count)
	for _, i := range indices[:count] {
		out = append(out, int(i))
	}
	return out, e.host.failed(code, text)
}

// Testall reports whether all requests are complete. If so, a request may still be incomplete at
// this replica until Wait returns for it.
func (e *Engine) Testall(rs []*Request) (bool, error) {
	list, n := handles(rs)
	var done uint32
	code, text := e.host.call(func(later uint32) int32 { return hostTestall(list, n, unsafe.Pointer(&done), later) })
	return done != 0, e.host.failed(code, text)
}

// WaitContext waits until r is complete or ctx has ended, and reports whether r is complete. Wait
// then returns the result; at a replica, Wait may still block.
func (e *Engine) WaitContext(ctx context.Context, r *Request) (bool, error) {
	var done uint32
	code, text := e.host.callUntil(ctx, func(later uint32) int32 {
		return hostWaitUntil(r.handle, unsafe.Pointer(&done), later)
	})
	return done != 0, e.host.failed(code, text)
}
