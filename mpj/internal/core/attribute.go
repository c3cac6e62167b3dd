package core

import "slices"

// A Keyval names an attribute: a value that the program, or a library that it uses, attaches to a
// communicator. Attributes are local to the process.
type Keyval struct {
	// Copy returns the value for a duplicate of old and whether to set it. If Copy is nil, Dup does
	// not copy the attribute.
	Copy func(old *Comm, value any) (any, bool)
	// Delete, if not nil, is called when a value is deleted or replaced, or its communicator is freed.
	// If Delete returns an error, the value stays.
	Delete func(c *Comm, value any) error
}

// An attribute is a value with its key.
type attribute struct {
	key   *Keyval
	value any
}

// An attributes lists the attributes of a communicator in the order in which they were set.
type attributes []attribute

// index returns the index of the attribute with key k, or -1.
func (l attributes) index(k *Keyval) int {
	return slices.IndexFunc(l, func(a attribute) bool { return a.key == k })
}

// PutAttribute sets the attribute of c that k names. It deletes the previous value, if there is one.
func PutAttribute(c *Comm, k *Keyval, value any) error {
	if err := checkKeyval(c, k); err != nil {
		return err
	}
	for !setAttribute(c, attribute{k, value}) {
		if err := deleteAttribute(c, k); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyval returns an error if c or k is invalid.
func checkKeyval(c *Comm, k *Keyval) error {
	if err := c.Check(); err != nil {
		return err
	}
	if k == nil {
		return c.Failf(ErrKeyval, "the key is nil")
	}
	return nil
}

// setAttribute adds a to c and returns true, unless its key is already set.
func setAttribute(c *Comm, a attribute) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attributes.index(a.key) >= 0 {
		return false
	}
	c.attributes = append(c.attributes, a)
	return true
}

// Attribute returns the attribute of c that k names; ok reports whether it is set. c and k may be nil.
func Attribute(c *Comm, k *Keyval) (value any, ok bool) {
	if c == nil || k == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.attributes.index(k); i >= 0 {
		return c.attributes[i].value, true
	}
	return nil, false
}

// DeleteAttribute deletes the attribute of c that k names. Deleting an attribute that is not set is
// not an error.
func DeleteAttribute(c *Comm, k *Keyval) error {
	if err := checkKeyval(c, k); err != nil {
		return err
	}
	return deleteAttribute(c, k)
}

// deleteAttribute removes an attribute if its delete function returns no error. It calls the
// function without holding c.mu, so that the function may use c.
func deleteAttribute(c *Comm, k *Keyval) error {
	c.mu.Lock()
	i := c.attributes.index(k)
	var old attribute
	if i >= 0 {
		old = c.attributes[i]
		c.attributes = slices.Delete(c.attributes, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 || k.Delete == nil {
		return nil
	}
	if err := k.Delete(c, old.value); err != nil {
		c.mu.Lock()
		c.attributes = append(c.attributes, old)
		c.mu.Unlock()
		e := c.Failf(ErrOther, "the attribute's delete function")
		e.Err = err
		return e
	}
	return nil
}

// copyAttributes gives d, a duplicate of c, the attributes that the copy functions return. It calls
// them in the order in which the attributes were set, so that all replicas do the same.
func copyAttributes(c, d *Comm) {
	c.mu.Lock()
	list := slices.Clone(c.attributes)
	c.mu.Unlock()
	for _, a := range list {
		if a.key.Copy == nil {
			continue
		}
		if value, ok := a.key.Copy(c, a.value); ok {
			d.attributes = append(d.attributes, attribute{a.key, value})
		}
	}
}

// deleteAttributes deletes all attributes of c, starting with the last, and stops at the first
// delete function that fails.
func deleteAttributes(c *Comm) error {
	for {
		c.mu.Lock()
		n := len(c.attributes)
		var k *Keyval
		if n > 0 {
			k = c.attributes[n-1].key
		}
		c.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := deleteAttribute(c, k); err != nil {
			return err
		}
	}
}
