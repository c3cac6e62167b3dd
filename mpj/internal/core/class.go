package core

// A Class is the kind of an error. It is one of MPI's error classes, with the number that the ABI of
// MPI-5 assigns to it, or a class of this implementation.
type Class int

// MPI's error classes. Each has the number of the constant with the prefix MPI_ERR.
const (
	ErrBuffer      Class = 1
	ErrCount       Class = 2
	ErrType        Class = 3
	ErrTag         Class = 4
	ErrComm        Class = 5
	ErrRank        Class = 6
	ErrRequest     Class = 7
	ErrRoot        Class = 8
	ErrGroup       Class = 9
	ErrOp          Class = 10
	ErrTopology    Class = 11
	ErrDims        Class = 12
	ErrArg         Class = 13
	ErrTruncate    Class = 15
	ErrOther       Class = 16
	ErrPending     Class = 18
	ErrInStatus    Class = 19
	ErrInfoKey     Class = 31
	ErrInfoNoKey   Class = 32
	ErrInfoValue   Class = 33
	ErrInfo        Class = 34
	ErrKeyval      Class = 36
	ErrUnsupported Class = 55 // MPI_ERR_UNSUPPORTED_OPERATION
)

// The classes of this implementation. Their numbers are greater than those of all classes of the
// standard, and at most MPI_ERR_LASTCODE.
const (
	// ErrDeadlock is the class of the calls of ranks that wait for each other forever.
	ErrDeadlock Class = 0x3f00 + iota
	// ErrContext is the class of a call whose context argument has ended.
	ErrContext
	// ErrFinalized is the class of a call after the end of the process's part in the job.
	ErrFinalized
)

// classTexts describes the classes.
var classTexts = map[Class]string{
	ErrArg:         "invalid argument",
	ErrBuffer:      "buffers of unequal or too small length",
	ErrComm:        "invalid communicator",
	ErrContext:     "the context of the call ended",
	ErrCount:       "invalid count",
	ErrDeadlock:    "deadlock",
	ErrDims:        "invalid dimensions",
	ErrFinalized:   "the world is finalized",
	ErrGroup:       "invalid group",
	ErrInfo:        "invalid info object",
	ErrInfoKey:     "invalid info key",
	ErrInfoNoKey:   "no such info key",
	ErrInfoValue:   "invalid info value",
	ErrInStatus:    "a request failed",
	ErrKeyval:      "invalid attribute key",
	ErrOp:          "invalid operation",
	ErrOther:       "failed",
	ErrPending:     "never received or waited for",
	ErrRank:        "invalid rank",
	ErrRequest:     "invalid request",
	ErrRoot:        "invalid root",
	ErrTag:         "invalid tag",
	ErrTopology:    "invalid topology",
	ErrTruncate:    "message longer than the receive buffer",
	ErrType:        "invalid datatype",
	ErrUnsupported: "not supported",
}

// Error describes the class. It makes a Class usable with errors.Is.
func (c Class) Error() string { return classTexts[c] }
