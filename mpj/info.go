package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/core"

// An Info is a list of hints: keys with values, in the order in which the keys were first set. MPI
// programs pass hints to a library that may be faster with them. This package keeps the hints of a
// communicator and returns them, but no hint has an effect here.
//
// InfoCreate returns a new Info. A nil *Info is MPI_INFO_NULL: it has no hints. Several goroutines may
// use an Info at the same time.
type Info core.Info

// InfoCreate returns an Info without hints.
func InfoCreate() *Info { return new(Info) }

// Set sets the value of key, which it adds if it is new. Keys have 1 to 255 bytes, and values at most
// 1023.
func (x *Info) Set(key, value string) error {
	return errorOf("Set", (*core.Info)(x).Set(key, value))
}

// Get returns the value of key; ok reports whether it is set.
func (x *Info) Get(key string) (value string, ok bool) { return (*core.Info)(x).Get(key) }

// Delete removes key and its value. It returns ErrInfoNoKey if key is not set.
func (x *Info) Delete(key string) error {
	return errorOf("Delete", (*core.Info)(x).Delete(key))
}

// Nkeys returns the number of keys.
func (x *Info) Nkeys() int { return (*core.Info)(x).Size() }

// Nthkey returns the nth key, counted from 0 in the order in which the keys were set.
func (x *Info) Nthkey(n int) (string, error) {
	key, err := (*core.Info)(x).Key(n)
	return key, errorOf("Nthkey", err)
}

// Dup returns a copy of x, with the same keys in the same order.
func (x *Info) Dup() *Info { return (*Info)((*core.Info)(x).Dup()) }

// SetInfo adds the hints of x to those of c, and replaces the values of keys that c has. All ranks of
// c call SetInfo.
func (c *Comm) SetInfo(x *Info) error {
	const op = "SetInfo"
	if err := c.check(op); err != nil {
		return err
	}
	if err := c.agree(op, plainCall(""), nil); err != nil {
		return err
	}
	return errorOf(op, core.SetInfo(&c.base, (*core.Info)(x)))
}

// Info returns a new Info with the hints of c.
func (c *Comm) Info() (*Info, error) {
	x, err := core.InfoOf(c.core())
	return (*Info)(x), errorOf("Info", err)
}
