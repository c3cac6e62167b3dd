package mpj

import "slices"

// A Key names an attribute: a value of type T that the program, or a library that it uses, attaches
// to a communicator. KeyvalCreate returns a new Key. Attributes are local to the process; setting an
// attribute sends no messages.
type Key[T any] struct{ keyval *keyval }

// A keyval is a Key without the type parameter. Dup calls the copy functions in the order in which
// the attributes were set, so that all replicas do the same.
type keyval struct {
	copies  func(old *Comm, value any) (any, bool)
	deletes func(c *Comm, value any) error
}

// An attribute is a value with its key.
type attribute struct {
	key   *keyval
	value any
}

// KeyvalCreate returns a new key. When a communicator is duplicated, copies returns the value for
// the duplicate and whether to set it; if copies is nil, the attribute is not copied. deletes, if
// not nil, is called when a value is deleted or replaced, or its communicator is freed. If deletes
// returns an error, the value stays.
func KeyvalCreate[T any](copies func(old *Comm, value T) (T, bool), deletes func(c *Comm, value T) error) *Key[T] {
	k := new(keyval)
	if copies != nil {
		k.copies = func(old *Comm, value any) (any, bool) { return copies(old, value.(T)) }
	}
	if deletes != nil {
		k.deletes = func(c *Comm, value any) error { return deletes(c, value.(T)) }
	}
	return &Key[T]{k}
}

// KeepAttribute is a copy function that gives the duplicate the same value.
func KeepAttribute[T any](_ *Comm, value T) (T, bool) { return value, true }

// AttrPut sets the attribute of c that k names.
func AttrPut[T any](c *Comm, k *Key[T], value T) error {
	if err := c.check("AttrPut"); err != nil {
		return err
	}
	if k == nil {
		return c.failf(ErrKeyval, "AttrPut", "the key is nil")
	}
	for !c.setAttribute(attribute{k.keyval, value}) {
		if err := c.deleteAttribute("AttrPut", k.keyval); err != nil {
			return err
		}
	}
	return nil
}

// setAttribute adds a to c and returns true, unless its key is already set.
func (c *Comm) setAttribute(a attribute) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attributeOf(a.key) >= 0 {
		return false
	}
	c.attributes = append(c.attributes, a)
	return true
}

// AttrGet returns the attribute of c that k names; ok reports whether it is set.
func AttrGet[T any](c *Comm, k *Key[T]) (value T, ok bool) {
	if c == nil || k == nil {
		return value, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.attributeOf(k.keyval); i >= 0 {
		return c.attributes[i].value.(T), true
	}
	return value, false
}

// AttrDelete deletes the attribute of c that k names. Deleting an attribute that is not set is not
// an error.
func AttrDelete[T any](c *Comm, k *Key[T]) error {
	if err := c.check("AttrDelete"); err != nil {
		return err
	}
	if k == nil {
		return c.failf(ErrKeyval, "AttrDelete", "the key is nil")
	}
	return c.deleteAttribute("AttrDelete", k.keyval)
}

// attributeOf returns the index of the attribute with key k, or -1. The caller holds c.mu.
func (c *Comm) attributeOf(k *keyval) int {
	return slices.IndexFunc(c.attributes, func(a attribute) bool { return a.key == k })
}

// deleteAttribute removes an attribute if its delete function returns no error. It calls the
// function without holding c.mu, so that the function may use c.
func (c *Comm) deleteAttribute(op string, k *keyval) error {
	c.mu.Lock()
	i := c.attributeOf(k)
	var old attribute
	if i >= 0 {
		old = c.attributes[i]
		c.attributes = slices.Delete(c.attributes, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 || k.deletes == nil {
		return nil
	}
	if err := k.deletes(c, old.value); err != nil {
		c.mu.Lock()
		c.attributes = append(c.attributes, old)
		c.mu.Unlock()
		return c.handle(&Error{Class: ErrOther, Op: op, Detail: "the attribute's delete function", Err: err})
	}
	return nil
}

// copyAttributes gives d, a duplicate of c, the attributes that the copy functions return.
func (c *Comm) copyAttributes(d *Comm) {
	c.mu.Lock()
	attributes := slices.Clone(c.attributes)
	c.mu.Unlock()
	for _, a := range attributes {
		if a.key.copies == nil {
			continue
		}
		if value, ok := a.key.copies(c, a.value); ok {
			d.attributes = append(d.attributes, attribute{a.key, value})
		}
	}
}

// deleteAttributes deletes all attributes of c, starting with the last, and stops at the first
// delete function that fails.
func (c *Comm) deleteAttributes(op string) error {
	for {
		c.mu.Lock()
		n := len(c.attributes)
		var k *keyval
		if n > 0 {
			k = c.attributes[n-1].key
		}
		c.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := c.deleteAttribute(op, k); err != nil {
			return err
		}
	}
}
