package mpj

// A latch is set once, and read with every call. A module has one thread; Go's compiler makes a call of each
// atomic operation in it.
type latch bool

// Load reports whether f was set.
func (f *latch) Load() bool { return bool(*f) }

// Store sets f.
func (f *latch) Store(set bool) { *f = latch(set) }
