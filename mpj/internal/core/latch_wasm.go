package core

// A latch is a flag that rarely changes and is read in every call. A module has one thread, so a latch
// needs no atomic operations, which Go would compile to function calls.
type latch bool

// Load reports whether f is set.
func (f *latch) Load() bool { return bool(*f) }

// Store sets f to set.
func (f *latch) Store(set bool) { *f = latch(set) }
