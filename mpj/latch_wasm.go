package mpj

// A latch is set once, and read in every call. A module has one thread, so no atomic operation is
// needed; Go would compile each to a function call.
type latch bool

// Load reports whether f is set.
func (f *latch) Load() bool { return bool(*f) }

// Store sets f to set.
func (f *latch) Store(set bool) { *f = latch(set) }
