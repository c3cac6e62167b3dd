package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// A Key names an attribute: a value of type T that the program, or a library that it uses, attaches
// to a communicator. KeyvalCreate returns a new Key. Attributes are local to the process; setting an
// attribute sends no messages.
type Key[T any] struct{ keyval *core.Keyval }

// core returns the key of package core, or nil if k is nil.
func (k *Key[T]) core() *core.Keyval {
	if k == nil {
		return nil
	}
	return k.keyval
}

// KeyvalCreate returns a new key. When a communicator is duplicated, copies returns the value for
// the duplicate and whether to set it; if copies is nil, the attribute is not copied. deletes, if
// not nil, is called when a value is deleted or replaced, or its communicator is freed. If deletes
// returns an error, the value stays.
func KeyvalCreate[T any](copies func(old *Comm, value T) (T, bool), deletes func(c *Comm, value T) error) *Key[T] {
	k := new(core.Keyval)
	if copies != nil {
		k.Copy = func(old *core.Comm, value any) (any, bool) { return copies(fromBase(old), value.(T)) }
	}
	if deletes != nil {
		k.Delete = func(c *core.Comm, value any) error { return deletes(fromBase(c), value.(T)) }
	}
	return &Key[T]{k}
}

// KeepAttribute is a copy function that gives the duplicate the same value.
func KeepAttribute[T any](_ *Comm, value T) (T, bool) { return value, true }

// AttrPut sets the attribute of c that k names.
func AttrPut[T any](c *Comm, k *Key[T], value T) error {
	return errorOf("AttrPut", core.PutAttribute(c.core(), k.core(), value))
}

// AttrGet returns the attribute of c that k names; ok reports whether it is set.
func AttrGet[T any](c *Comm, k *Key[T]) (value T, ok bool) {
	v, ok := core.Attribute(c.core(), k.core())
	if !ok {
		return value, false
	}
	return v.(T), true
}

// AttrDelete deletes the attribute of c that k names. Deleting an attribute that is not set is not
// an error.
func AttrDelete[T any](c *Comm, k *Key[T]) error {
	return errorOf("AttrDelete", core.DeleteAttribute(c.core(), k.core()))
}
