package hostcall

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A checkpoint is a checkpoint in progress. The engine's call runs in a separate goroutine, and
// waits for the module when the program's state must be written or read.
type checkpoint struct {
	ctx      context.Context // ends when the process closes
	steps    chan uint32     // steps for the module to take
	done     chan done       // completed steps
	returned chan error      // result of the engine's call

	step uint32    // current step of the module
	to   io.Writer // destination while saving
	from io.Reader // source while restoring
	own  []byte    // host's state and the module's own state to restore
}

// done is the result of a step of the module.
type done struct {
	outcome uint32
	own     []byte
}

// The steps of a checkpoint.
const (
	stepNone    = iota // nothing left to do, with or without a checkpoint
	stepSave           // write the state
	stepRestore        // read the state
)

// The outcomes of a step.
const (
	outcomeWell   = iota // success
	outcomeFailed        // the program returned an error
	outcomeNot           // the state is saved, but no checkpoint is possible
)

// errStep is the error of a step in which the program failed; the program knows the reason.
var errStep = errors.New("the program has failed to save or restore its state")

// run makes the engine's call, and returns when the module has taken all steps.
func (c *checkpoint) run(e *engine.Engine) {
	var own []byte
	var ok bool
	c.returned <- e.Checkpoint(engine.Checkpoint{
		Save: func(to io.Writer) (err error) {
			c.to = to
			own, ok, err = c.await(stepSave)
			return err
		},
		Own: func() ([]byte, bool) { return own, ok },
		TakeOwn: func(b []byte) error {
			c.own = b
			return nil
		},
		Restore: func(from io.Reader) error {
			c.from = from
			_, _, err := c.await(stepRestore)
			return err
		},
	})
}

// await makes the module take a step, and waits for the result.
func (c *checkpoint) await(step uint32) (own []byte, ok bool, err error) {
	c.steps <- step
	select {
	case d := <-c.done:
		if d.outcome == outcomeFailed {
			err = errStep
		}
		return d.own, d.outcome == outcomeWell, err
	case <-c.ctx.Done():
		return nil, false, engine.ErrClosed
	}
}

// next waits for the next step, or for the end of the checkpoint.
func (c *checkpoint) next() (step uint32, err error) {
	select {
	case step = <-c.steps:
	case err = <-c.returned:
	}
	return step, err
}

// end reports the result of the current step.
func (c *checkpoint) end(d done) {
	c.step, c.to, c.from, c.own = stepNone, nil, nil, nil
	select {
	case c.done <- d:
	case <-c.ctx.Done():
	}
}

// at returns c. It panics with a Fault unless c is in progress and at one of the given steps.
func (c *checkpoint) at(steps ...uint32) *checkpoint {
	if c == nil || !slices.Contains(steps, c.step) {
		panic(Fault("checkpoint step out of order"))
	}
	return c
}

func (p *Process) beginCheckpoint(a arguments) uint32 {
	step := p.memory.words(a.u(0), 3)
	if p.checkpoint != nil {
		panic(Fault("checkpoint during a checkpoint"))
	}
	c := &checkpoint{ctx: p.background.ctx, steps: make(chan uint32, 1), done: make(chan done), returned: make(chan error, 1)}
	p.checkpoint = c
	p.background.running.Go(func() { c.run(p.engine) }) // ends when the engine's call returns, at the latest when this process closes
	return p.nextStep(a, step)
}

// nextStep tells the module its next step.
func (p *Process) nextStep(a arguments, at words) uint32 {
	c, step := p.checkpoint, uint32(stepNone)
	return p.run(a.later(), func() (err error) {
		step, err = c.next()
		return err
	}, func(error) {
		c.step = step
		at.set(0, step)
		at.set(1, 0)
		at.set(2, 0)
		switch step {
		case stepNone:
			p.checkpoint = nil
		case stepRestore:
			own := takeState(c.own, p.host.Restore)
			at.set(1, p.keep(own))
			at.set(2, uint32(len(own)))
		}
	})
}

// endStep records the result of the module's step.
func (p *Process) endStep(a arguments) uint32 {
	c := p.checkpoint.at(stepSave, stepRestore)
	own, at := p.memory.bytes(a.u(1), a.u(2)), p.memory.words(a.u(3), 3)
	if a.u(0) > outcomeNot {
		panic(faultf("unknown outcome %d of a checkpoint step", a.u(0)))
	}
	c.end(done{a.u(0), append(appendState(nil, p.host.Save()), own...)})
	return p.nextStep(a, at)
}

func (p *Process) writeState(a arguments) uint32 {
	_, err := p.checkpoint.at(stepSave).to.Write(p.memory.bytes(a.u(0), a.u(1)))
	return p.code(err)
}

// readState returns the number of bytes that it has read, 0 at the end of the state, and -1 after an
// error.
func (p *Process) readState(a arguments) uint32 {
	n, err := p.checkpoint.at(stepRestore).from.Read(p.memory.bytes(a.u(0), a.u(1)))
	if n > 0 || err == nil || errors.Is(err, io.EOF) {
		return uint32(n)
	}
	p.code(err)
	return math.MaxUint32
}

var errNotJoined = errors.New("this process has not joined a job")

func (p *Process) printed(a arguments) uint32 {
	at := p.memory.words(a.u(0), 4)
	var records [2]uint64
	return p.run(a.later(), func() error {
		if p.link == nil {
			return errNotJoined
		}
		var ok bool
		if records, ok = p.link.Printed(); !ok {
			return errors.New("the user has not received all output yet")
		}
		return nil
	}, func(error) {
		at.set64(records[0])
		at[8:].set64(records[1])
	})
}

func (p *Process) skip(a arguments) uint32 {
	at := p.memory.words(a.u(0), 4)
	records := [2]uint64{at.get64(), at[8:].get64()}
	return p.run(a.later(), func() error {
		if p.link == nil {
			return errNotJoined
		}
		return p.link.Skip(records)
	}, nothing)
}

// appendState appends the host's state to b, with its size. A checkpoint begins with it.
func appendState(b, state []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(state))), state...)
}

// takeState passes the host's state at the beginning of b to restore, and returns the rest of b.
func takeState(b []byte, restore func([]byte) error) []byte {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || restore(b[n:n+int(size)]) != nil {
		panic(Fault("checkpoint without the module's clock"))
	}
	return b[n+int(size):]
}
