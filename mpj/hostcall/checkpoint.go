package hostcall

import (
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
	steps    chan uint32 // steps for the module to take
	done     chan done   // completed steps
	returned chan error  // result of the engine's call

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
	outcomeWell   = iota
	outcomeFailed // the program returned an error
	outcomeNot    // the state is saved, but no checkpoint is possible
)

// errStep is the error of a step in which the program failed; the program knows the reason.
var errStep = errors.New("the program has failed to save or restore its state")

func (p *Process) beginCheckpoint(a arguments) uint32 {
	step := p.words(a.u(0), 3)
	if p.checkpoint != nil {
		panic(Fault("checkpoint during a checkpoint"))
	}
	c := &checkpoint{steps: make(chan uint32, 1), done: make(chan done), returned: make(chan error, 1)}
	p.checkpoint = c
	var own []byte
	var ok bool
	p.running.Go(func() { // ends when the engine's call returns, at the latest when this process closes
		c.returned <- p.engine.Checkpoint(engine.Checkpoint{
			Save: func(to io.Writer) (err error) {
				c.to = to
				own, ok, err = p.await(c, stepSave)
				return err
			},
			Own: func() ([]byte, bool) { return own, ok },
			TakeOwn: func(b []byte) error {
				c.own = b
				return nil
			},
			Restore: func(from io.Reader) error {
				c.from = from
				_, _, err := p.await(c, stepRestore)
				return err
			},
		})
	})
	return p.nextStep(a, step)
}

// await makes the module take a step, and waits for the result.
func (p *Process) await(c *checkpoint, step uint32) (own []byte, ok bool, err error) {
	c.steps <- step
	select {
	case d := <-c.done:
		if d.outcome == outcomeFailed {
			err = errStep
		}
		return d.own, d.outcome == outcomeWell, err
	case <-p.ctx.Done():
		return nil, false, engine.ErrClosed
	}
}

// nextStep tells the module its next step.
func (p *Process) nextStep(a arguments, at words) uint32 {
	c, step := p.checkpoint, uint32(stepNone)
	return p.run(a.later(), func() (err error) {
		select {
		case step = <-c.steps:
		case err = <-c.returned:
		}
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
			own := p.takeState(c.own)
			at.set(1, p.keep(own))
			at.set(2, uint32(len(own)))
		}
	})
}

// at returns the checkpoint in progress, which must be at one of the given steps.
func (p *Process) at(steps ...uint32) *checkpoint {
	if p.checkpoint == nil || !slices.Contains(steps, p.checkpoint.step) {
		panic(Fault("checkpoint step out of order"))
	}
	return p.checkpoint
}

// endStep records the result of the module's step.
func (p *Process) endStep(a arguments) uint32 {
	c, own, at := p.at(stepSave, stepRestore), p.bytes(a.u(1), a.u(2)), p.words(a.u(3), 3)
	if a.u(0) > outcomeNot {
		panic(faultf("unknown outcome %d of a checkpoint step", a.u(0)))
	}
	c.step, c.to, c.from, c.own = stepNone, nil, nil, nil
	select {
	case c.done <- done{a.u(0), append(p.appendState(nil), own...)}:
	case <-p.ctx.Done():
	}
	return p.nextStep(a, at)
}

func (p *Process) writeState(a arguments) uint32 {
	_, err := p.at(stepSave).to.Write(p.bytes(a.u(0), a.u(1)))
	return p.code(err)
}

// readState returns the number of bytes read: 0 at the end, or -1 after an error.
func (p *Process) readState(a arguments) uint32 {
	n, err := p.at(stepRestore).from.Read(p.bytes(a.u(0), a.u(1)))
	if n > 0 || err == nil || errors.Is(err, io.EOF) {
		return uint32(n)
	}
	p.code(err)
	return math.MaxUint32
}

var errNotJoined = errors.New("this process has not joined a job")

func (p *Process) printed(a arguments) uint32 {
	at := p.words(a.u(0), 4)
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
	at := p.words(a.u(0), 4)
	records := [2]uint64{at.get64(), at[8:].get64()}
	return p.run(a.later(), func() error {
		if p.link == nil {
			return errNotJoined
		}
		return p.link.Skip(records)
	}, nothing)
}

// appendState appends the host's state to b: its size, and the result of Config.Save. A checkpoint
// begins with it.

func (p *Process) appendState(b []byte) []byte {
	state := p.save()
	return append(binary.AppendUvarint(b, uint64(len(state))), state...)
}

// takeState restores the host's state from b, and returns the rest of b.
func (p *Process) takeState(b []byte) []byte {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) || p.restore(b[n:n+int(size)]) != nil {
		panic(Fault("checkpoint without the module's clock"))
	}
	return b[n+int(size):]
}
