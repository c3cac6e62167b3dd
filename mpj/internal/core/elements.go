package core

// An Elements is a sequence of elements of equal size in memory: a buffer argument of a collective.
type Elements struct {
	Bytes  []byte
	Length int // number of elements
	Unit   int // bytes of an element
	// Null reports that the program passes no buffer. As a buffer to send, it has the meaning of
	// MPI_IN_PLACE.
	Null bool
}

// An Op is the operation of a reduction. An item consists of one or more elements. Reductions split
// vectors only between items.
type Op struct {
	// Combine computes inout = in op inout, where in comes from lower ranks. It must be associative.
	// It is called on one or more items.
	Combine func(in, inout []byte)
	Length  int  // elements of an item
	Unit    int  // bytes of an element
	Null    bool // whether the program passes no operation
}

// A Call describes the program's call of a collective.
type Call struct {
	Name string // name of the function, for errors and comparisons
	// With checks, Type is the name of the element type, and Operation is the name of the operation,
	// or "" if it has none. Otherwise both are empty.
	Type, Operation string
}
