package mpj

import (
	"reflect"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
)

// ReduceValue combines the values of all ranks with op, in rank order, and returns the result at
// root; other ranks get a zero V. V can be any type that SendValue accepts. In op(a, b), a comes from
// lower ranks than b. op must be associative, but need not be commutative. It may change and return
// its arguments, so it may change v. The order depends only on the number of ranks.
func ReduceValue[V any](c *Comm, v V, op func(a, b V) V, root int) (result V, err error) {
	p := partialValue[V]{c: c, call: "ReduceValue", v: v, op: op}
	if err := p.check(root); err != nil {
		return result, err
	}
	b, err := core.ReduceWhole(&c.base, p.encode, p.higher, root)
	if err != nil || c.Rank() != root {
		return result, c.wrap(p.call, err)
	}
	return p.result(b)
}

// AllreduceValue is ReduceValue with the result at every rank.
func AllreduceValue[V any](c *Comm, v V, op func(a, b V) V) (result V, err error) {
	p := partialValue[V]{c: c, call: "AllreduceValue", v: v, op: op}
	if err := p.check(calls.None); err != nil {
		return result, err
	}
	b, err := core.AllreduceWhole(&c.base, p.encode, p.higher)
	if err != nil {
		return result, c.wrap(p.call, err)
	}
	return p.result(b)
}

// ScanValue returns, at each rank, the combination of the values of ranks 0 to that rank. The
// requirements of ReduceValue apply.
func ScanValue[V any](c *Comm, v V, op func(a, b V) V) (result V, err error) {
	p := partialValue[V]{c: c, call: "ScanValue", v: v, op: op}
	if err := p.check(calls.None); err != nil {
		return result, err
	}
	if _, err := core.ScanWhole(&c.base, p.encode, p.lower); err != nil {
		return result, c.wrap(p.call, err)
	}
	return p.v, nil
}

// ExscanValue is ScanValue without the rank's own value: rank i gets the combination of the values of
// ranks 0 to i-1, and rank 0 gets a zero V.
func ExscanValue[V any](c *Comm, v V, op func(a, b V) V) (result V, err error) {
	p := partialValue[V]{c: c, call: "ExscanValue", v: v, op: op}
	if err := p.check(calls.None); err != nil {
		return result, err
	}
	before, err := core.ScanWhole(&c.base, p.encode, p.lower)
	if err != nil || c.Rank() == 0 {
		return result, c.wrap(p.call, err)
	}
	return decode[V](c, p.call, before) // op may have changed the value that lower decoded
}

// A partialValue is this rank's partial result of a reduction of values.
type partialValue[V any] struct {
	c    *Comm
	call string
	v    V
	op   func(a, b V) V
}

// check checks the arguments of the call. root is calls.None in a reduction without a root.
func (p *partialValue[V]) check(root int) error {
	c := p.c
	if err := c.checkIntra(p.call); err != nil {
		return err
	}
	call := core.Call{Name: p.call}
	if c.compares() {
		call.Type, call.Operation = reflect.TypeFor[V]().String(), operationName(reflect.ValueOf(p.op).Pointer())
	}
	var invalid error
	if p.op == nil {
		invalid = c.base.Failf(core.ErrOp, "op is nil")
	}
	return c.wrap(p.call, core.CheckValue(&c.base, call, root, invalid))
}

// encode encodes the partial result.
func (p *partialValue[V]) encode() ([]byte, error) { return encode(p.c, p.call, p.v) }

// higher combines the partial result with one of higher ranks.
func (p *partialValue[V]) higher(b []byte) error {
	v, err := decode[V](p.c, p.call, b)
	if err == nil {
		p.v = p.op(p.v, v)
	}
	return err
}

// lower combines a partial result of lower ranks with the own one.
func (p *partialValue[V]) lower(b []byte) error {
	v, err := decode[V](p.c, p.call, b)
	if err == nil {
		p.v = p.op(v, p.v)
	}
	return err
}

// result returns the result of ReduceWhole or AllreduceWhole, which is encoded in b except at rank 0.
func (p *partialValue[V]) result(b []byte) (V, error) {
	if p.c.Rank() == 0 {
		return p.v, nil
	}
	return decode[V](p.c, p.call, b)
}
