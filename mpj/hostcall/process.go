package hostcall

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/join"
	"github.com/p2pmpi/p2pmpi/mpj/internal/link"
)

// A Process is a module's part in its job. Only the goroutine that runs the module may call it.
type Process struct {
	memory func(at, size uint32) ([]byte, bool)
	told   func(seconds float64)
	waited func(time.Duration)
	lost   func(error)

	save    func() []byte
	restore func([]byte) error

	ctx    context.Context
	cancel context.CancelFunc

	joined bool
	engine *engine.Engine // never nil; a closed engine before join
	link   *link.Link     // nil if there is none
	ranks  int
	done   *engine.Request // completed request, handle 0

	requests table[engine.Request]
	messages table[engine.Matched]
	contents table[[]byte]
	text     string // of the last error

	checkpoint *checkpoint // nil if no checkpoint is in progress

	finished chan finished
	running  sync.WaitGroup // calls in the background

	mu      sync.Mutex
	bounded map[uint32]context.CancelFunc // calls that can be cancelled, by ticket
}

// finished is a background call that is done.
type finished struct {
	ticket uint32
	err    error
	write  func(error) // writes the results of the call
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
	// Save returns the host's state that a checkpoint needs besides the engine's: that of the
	// module's clock. Restore restores it in the process that resumes from the checkpoint.
	Save    func() []byte
	Restore func([]byte) error
}

// New returns a Process for a module that has not joined its job yet. The caller must call Close in
// any case.
func New(c Config) *Process {
	p := &Process{
		memory: c.Memory, told: c.Told, waited: c.Waited, lost: c.Lost, save: c.Save, restore: c.Restore,
		finished: make(chan finished, 64), bounded: make(map[uint32]context.CancelFunc),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.use(engine.New(p.ctx, join.Config(view.Process{}, oneRank, false, nil)), 1)
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
	p.cancel()
	p.running.Wait()
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

// run makes a call, at once or in the background, and then writes its results.
func (p *Process) run(later uint32, call func() error, write func(error)) uint32 {
	if later == 0 {
		err := call()
		write(err)
		return p.code(err)
	}
	p.running.Go(func() { // ends when the call returns, at the latest when the engine ends
		f := finished{later, call(), write}
		select {
		case p.finished <- f:
		case <-p.ctx.Done():
		}
	})
	return pending
}

// nothing is the write function of calls without results.
func nothing(error) {}

// bound returns a context that giveUp cancels.
func (p *Process) bound(later uint32) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bounded[later] = cancel
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.bounded, later)
		cancel()
	}
}

func (p *Process) giveUp(a arguments) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.bounded[a.u(0)]; cancel != nil {
		cancel()
	}
	return 0
}

// next waits for a background call to complete.
func (p *Process) next(a arguments) uint32 {
	event := p.words(a.u(1), 2)
	var late <-chan time.Time
	if timeout := time.Duration(a[0]); timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	} else {
		none := make(chan time.Time)
		close(none)
		late = none
	}
	select {
	case f := <-p.finished:
		return p.report(event, f)
	default:
	}
	begun := time.Now()
	defer func() { p.waited(time.Since(begun)) }()
	select {
	case f := <-p.finished:
		return p.report(event, f)
	case <-late:
		return 0
	}
}

func (p *Process) report(event words, f finished) uint32 {
	f.write(f.err)
	event.set(0, f.ticket)
	event.set(1, p.code(f.err))
	return 1
}

func (p *Process) errorText(a arguments) uint32 {
	return uint32(copy(p.bytes(a.u(0), a.u(1)), p.text))
}

// keep stores contents for the module, and returns their handle.
func (p *Process) keep(b []byte) uint32 { return p.contents.put(&b) }

func (p *Process) take(a arguments) uint32 {
	b := p.contents.get(a.u(0))
	copy(p.bytes(a.u(1), a.u(2)), *b)
	p.contents.drop(a.u(0))
	return ok
}

func (p *Process) join(a arguments) uint32 {
	info := p.words(a.u(0), 6)
	if p.joined {
		return p.code(errors.New("this process has joined its job already"))
	}
	p.joined = true
	var e *engine.Engine
	var l *link.Link
	return p.run(a.later(), func() (err error) {
		e, l, err = join.Job(p.ctx, p.lost)
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
	text := string(p.bytes(a.u(1), min(a.u(2), maxReason)))
	if p.link == nil {
		panic(faultf("abort with status %d before the job was joined: %s", a.i(0), text))
	}
	if err := p.link.Abort(int(a.i(0)), text); err != nil {
		p.lost(err)
	}
	select {} // the peer ends this process
}

// maxReason bounds the reason of an abort, in bytes.
const maxReason = 4 << 10

func (p *Process) fail(arguments) uint32 {
	p.engine.Fail(context.Canceled)
	return 0
}
