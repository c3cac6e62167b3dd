package hostcall

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/join"
	"github.com/p2pmpi/p2pmpi/mpj/internal/link"
)

// A Process is a module's part in its job. Only the goroutine that runs the module may call it.
type Process struct {
	host       Config
	memory     memory
	background *background

	joined bool
	engine *engine.Engine // never nil; a closed engine before join
	link   *link.Link     // nil if there is none
	ranks  int
	done   *engine.Request // completed request, handle 0

	requests table[engine.Request]
	messages table[engine.Matched]
	contents table[[]byte]
	text     string // text of the last error

	checkpoint *checkpoint // nil if no checkpoint is in progress
}

// A Config holds the functions that a Process uses.
type Config struct {
	// Memory returns size bytes of the module's memory, which must not move while they are in use.
	// It returns false if the range does not exist.
	Memory func(at, size uint32) (b []byte, ok bool)
	// Told is called with each value of wtime that the module receives.
	Told func(seconds float64)
	// Waited is called with the time that the module has waited in next, so that its timers
	// advance.
	Waited func(time.Duration)
	// Lost is called when the peer is gone. It does not return.
	Lost func(error)
	// Save returns the state of the host that a checkpoint needs besides the engine's: the state of
	// the module's clock. Restore restores that state in a process that resumes from the checkpoint.
	Save    func() []byte
	Restore func([]byte) error
}

// New returns a Process for a module that has not joined its job yet. The caller must always call
// Close.
func New(c Config) *Process {
	p := &Process{host: c, memory: c.Memory, background: newBackground()}
	p.use(engine.New(p.background.ctx, join.Config(view.Process{}, oneRank, nil)), 1)
	p.engine.Close()
	return p
}

// use sets the engine to e.
func (p *Process) use(e *engine.Engine, ranks int) {
	p.engine, p.ranks, p.done = e, ranks, e.Begin()
	e.Finish(p.done, engine.Status{Source: engine.AnySource, Tag: engine.AnyTag}, nil)
}

// Call makes a call of the module. It stores the result in the first word of stack. It panics with
// a Fault if no correct module makes the call.
func (p *Process) Call(f *Function, stack []uint64) {
	code := f.call(p, arguments(stack[:len(f.Params)]))
	if f.Returns {
		stack[0] = uint64(code)
	}
}

// Close leaves the job, whether finalized or not.
func (p *Process) Close() {
	p.leave(nil)
	p.background.close()
}

// The codes that functions return.
const (
	ok uint32 = iota
	truncated
	replicated
	closed
	notice
	other
	pending = ^uint32(0)
)

// code returns the code of err, and keeps its text for error_text.
func (p *Process) code(err error) uint32 {
	if err == nil {
		return ok
	}
	var long *engine.TruncateError
	switch {
	case errors.As(err, &long):
		return truncated
	case errors.Is(err, engine.ErrReplicated):
		return replicated
	case errors.Is(err, engine.ErrClosed):
		return closed
	case errors.Is(err, engine.ErrNotice):
		return notice
	}
	p.text = err.Error()
	return other
}

// run makes a call, at once if later is 0 and else in the background, and then writes its results.
func (p *Process) run(later uint32, call func() error, write func(error)) uint32 {
	if later == 0 {
		err := call()
		write(err)
		return p.code(err)
	}
	p.background.start(later, call, write)
	return pending
}

// nothing is the write function of calls without results.
func nothing(error) {}

func (p *Process) giveUp(a arguments) uint32 {
	p.background.giveUp(a.u(0))
	return 0
}

// next reports a call that has completed in the background, and writes its results.
func (p *Process) next(a arguments) uint32 {
	event := p.memory.words(a.u(1), 2)
	f, waited, found := p.background.next(time.Duration(a[0]))
	if waited > 0 {
		p.host.Waited(waited)
	}
	if !found {
		return 0
	}
	f.write(f.err)
	event.set(0, f.ticket)
	event.set(1, p.code(f.err))
	return 1
}

func (p *Process) errorText(a arguments) uint32 {
	return uint32(copy(p.memory.bytes(a.u(0), a.u(1)), p.text))
}

// keep stores contents for the module, and returns their handle.
func (p *Process) keep(b []byte) uint32 { return p.contents.put(&b) }

func (p *Process) take(a arguments) uint32 {
	b := p.contents.get(a.u(0))
	copy(p.memory.bytes(a.u(1), a.u(2)), *b)
	p.contents.drop(a.u(0))
	return ok
}

func (p *Process) join(a arguments) uint32 {
	info := p.memory.words(a.u(0), 6)
	if p.joined {
		return p.code(errors.New("this process has joined its job already"))
	}
	p.joined = true
	var e *engine.Engine
	var l *link.Link
	return p.run(a.later(), func() (err error) {
		e, l, err = join.Job(p.background.ctx, p.host.Lost)
		return err
	}, func(err error) {
		if err == nil {
			p.link = l
			p.use(e, l.View().N)
			p.inform(info)
		}
	})
}

// inform writes the description of the job for the module.
func (p *Process) inform(info words) {
	self := p.link.Self()
	var places []byte
	for _, at := range p.link.Places() {
		places = binary.LittleEndian.AppendUint32(places, uint32(at[0]))
		places = binary.LittleEndian.AppendUint32(places, uint32(at[1]))
	}
	info.set(0, uint32(self.Rank))
	info.set(1, uint32(self.Replica))
	info.set(2, uint32(p.ranks))
	info[12:].setBool(p.engine.Replicated())
	info.set(4, p.keep(places))
	info.set(5, uint32(len(places)))
}

func (p *Process) finalize(a arguments) uint32 {
	return p.run(a.later(), func() error {
		if p.link == nil {
			return engine.ErrClosed
		}
		sums, summed := p.engine.Sums()
		return p.link.Finalize(p.engine.Context(), sums, summed)
	}, nothing)
}

// leave ends the engine and the control socket. Background calls then fail; the module may still
// receive their results.
func (p *Process) leave(arguments) uint32 {
	p.engine.Close()
	if p.link != nil {
		p.link.Close()
	}
	return 0
}

func (p *Process) abort(a arguments) uint32 {
	text := string(p.memory.bytes(a.u(1), min(a.u(2), maxReason)))
	if p.link == nil {
		panic(faultf("abort with status %d before the job was joined: %s", a.i(0), text))
	}
	if err := p.link.Abort(int(a.i(0)), text); err != nil {
		p.host.Lost(err)
	}
	select {} // the peer ends this process
}

// maxReason bounds the reason of an abort, in bytes.
const maxReason = 4 << 10

func (p *Process) fail(arguments) uint32 {
	p.engine.Fail(context.Canceled)
	return 0
}
