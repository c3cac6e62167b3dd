package core

import (
	"slices"
	"sync"
)

// MaxInfoKey and MaxInfoValue are the maximum lengths of keys and values in an Info, in bytes. The
// constants of the C interface, MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL, count the final zero too.
const (
	MaxInfoKey   = 255
	MaxInfoValue = 1023
)

// An Info is a list of hints: keys with values, in the order in which the keys were first set. Several
// goroutines may use it at the same time. A nil Info is the null object: it has no hints, and none can
// be set.
type Info struct {
	mu    sync.Mutex
	hints []hint
}

// A hint is a key with its value.
type hint struct{ key, value string }

// Set sets the value of key, which it adds if it is new.
func (x *Info) Set(key, value string) error {
	switch {
	case x == nil:
		return Failf(ErrInfo, "the info object is nil")
	case len(value) > MaxInfoValue:
		return Failf(ErrInfoValue, "a value of %d bytes, the maximum is %d", len(value), MaxInfoValue)
	}
	if err := checkInfoKey(key); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := x.indexOf(key); i >= 0 {
		x.hints[i].value = value
	} else {
		x.hints = append(x.hints, hint{key, value})
	}
	return nil
}

// checkInfoKey returns an error if key is empty or too long.
func checkInfoKey(key string) error {
	if len(key) == 0 || len(key) > MaxInfoKey {
		return Failf(ErrInfoKey, "a key of %d bytes, keys have 1 to %d", len(key), MaxInfoKey)
	}
	return nil
}

// indexOf returns the index of key, or -1. The caller holds x.mu.
func (x *Info) indexOf(key string) int {
	return slices.IndexFunc(x.hints, func(h hint) bool { return h.key == key })
}

// Get returns the value of key; ok reports whether it is set.
func (x *Info) Get(key string) (value string, ok bool) {
	if x == nil {
		return "", false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := x.indexOf(key); i >= 0 {
		return x.hints[i].value, true
	}
	return "", false
}

// Delete removes key and its value.
func (x *Info) Delete(key string) error {
	if x == nil {
		return Failf(ErrInfo, "the info object is nil")
	}
	if err := checkInfoKey(key); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.indexOf(key)
	if i < 0 {
		return Failf(ErrInfoNoKey, "%q", key)
	}
	x.hints = slices.Delete(x.hints, i, i+1)
	return nil
}

// Size returns the number of keys.
func (x *Info) Size() int { return len(x.all()) }

// Key returns the nth key, counted from 0 in the order in which the keys were set.
func (x *Info) Key(n int) (string, error) {
	all := x.all()
	if n < 0 || n >= len(all) {
		return "", Failf(ErrArg, "key %d of an info object with %d keys", n, len(all))
	}
	return all[n].key, nil
}

// Dup returns a copy of x, with the same keys in the same order. The copy of nil has no keys.
func (x *Info) Dup() *Info { return &Info{hints: x.all()} }

// all returns a copy of the hints.
func (x *Info) all() []hint {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.hints)
}

// SetInfo adds the hints of x to those of c, and replaces the values of keys that c has. No hint has an
// effect: messages and collectives are the same with all of them. All ranks of c call SetInfo.
func SetInfo(c *Comm, x *Info) error {
	if err := c.Check(); err != nil {
		return err
	}
	if x == nil {
		return c.Failf(ErrInfo, "the info object is nil")
	}
	addHints(c, x)
	return nil
}

// addHints adds the hints of x, which may be nil, to those of c.
func addHints(c *Comm, x *Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range x.all() {
		if i := slices.IndexFunc(c.hints, func(own hint) bool { return own.key == h.key }); i >= 0 {
			c.hints[i] = h
		} else {
			c.hints = append(c.hints, h)
		}
	}
}

// InfoOf returns a new Info with the hints of c.
func InfoOf(c *Comm) (*Info, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Info{hints: slices.Clone(c.hints)}, nil
}
