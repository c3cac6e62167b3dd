package mpj

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pmpi/p2pmpi/mpj/internal/calls"
	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

const (
	// AnySource lets a receive or probe match a message of any rank.
	AnySource = engineapi.AnySource
	// AnyTag lets a receive or probe match a message of any tag.
	AnyTag = engineapi.AnyTag
	// ProcNull is the null rank: messages sent to it are discarded, and a receive from it returns
	// at once with Source ProcNull and Size 0.
	ProcNull = -2
	// MaxTag is the largest tag; the smallest is 0.
	MaxTag = math.MaxInt32
	// Undefined represents a number that does not exist. Count returns Undefined if a message is not
	// a whole number of elements, Waitany if no request is active, and Group.Rank for a process that
	// is not a member.
	Undefined = -3
)

// A Comm is a communicator: ranks that may send to each other, and contexts that separate their
// messages from those of every other communicator.
//
// Several goroutines may use a Comm at the same time; the package documentation describes what the
// program must then ensure.
type Comm struct {
	base  core.Comm // ranks, contexts, attributes and error handler; its field Face is this Comm
	world *World
}

// The slots of package core that this package uses.
const (
	messageSlot    = core.MessageSlot
	collectiveSlot = core.CollectiveSlot
	detectorSlot   = core.DetectorSlot
)

// core returns the communicator of package core that c contains, or nil if c is nil.
func (c *Comm) core() *core.Comm {
	if c == nil {
		return nil
	}
	return &c.base
}

// fromBase returns the Comm that contains b, or nil if b is nil.
func fromBase(b *core.Comm) *Comm {
	if b == nil {
		return nil
	}
	return b.Face.(*Comm)
}

func (c *Comm) engine() *engine.Engine { return c.base.Engine() }

func (c *Comm) context(slot uint32) uint32 { return c.base.Context(slot) }

func (c *Comm) rankOf(world int) int { return c.base.RankOf(world) }

// Rank returns the rank of this process in c, 0..Size()-1, or in the local group of an
// intercommunicator.
func (c *Comm) Rank() int { return c.base.Rank() }

// Size returns the number of ranks in c, or in the local group of an intercommunicator.
func (c *Comm) Size() int { return c.base.Size() }

// Group returns the ranks of c, or the local group of an intercommunicator.
func (c *Comm) Group() Group { return fromCore(c.base.Group()) }

// namedGroup returns the group whose ranks messages on c address.
func (c *Comm) namedGroup() Group { return fromCore(c.base.NamedGroup()) }

// Compare compares c and d. It returns Identical if they are the same communicator, Congruent if
// they have the same ranks in the same order, Similar if they have the same ranks in a different
// order, and otherwise Unequal.
func (c *Comm) Compare(d *Comm) Comparison { return Comparison(c.core().Compare(d.core())) }

// Name returns the display name of c: "world", the name set with SetName, or "".
func (c *Comm) Name() string { return c.base.Name() }

// SetName sets the name of c, which errors include.
func (c *Comm) SetName(name string) { c.base.SetName(name) }

// A Status describes a message that was received or probed.
type Status struct {
	Source int // rank of the sender
	Tag    int
	Size   int // size in bytes; Count converts it to elements
	// Cancelled reports that no message was received because Cancel ended the receive.
	Cancelled bool
}

// Count returns the number of elements of type T in the message of s, or Undefined if the size of
// the message is not a whole number of elements.
func Count[T Element](s Status) int {
	if s.Size%sizeOf[T]() != 0 {
		return Undefined
	}
	return s.Size / sizeOf[T]()
}

// statusOf converts a status of the engine to the ranks of c.
func (c *Comm) statusOf(s engineapi.Status) Status {
	return Status(c.base.StatusOf(s))
}

// checkDest returns an error if the arguments of a send are invalid. dest may be ProcNull.
func (c *Comm) checkDest(op string, dest, tag int) error {
	return errorOf(op, c.core().CheckDest(dest, tag))
}

// check returns an error if c is nil or was freed. Split and similar functions return nil at ranks
// outside the new communicator.
func (c *Comm) check(op string) error { return errorOf(op, c.core().Check()) }

// checkIntra is like check, for operations that intercommunicators do not support.
func (c *Comm) checkIntra(op string) error {
	return errorOf(op, c.core().CheckIntra())
}

// SetErrhandler sets the error handler of c; nil means ErrorsReturn. Communicators created from c
// later inherit it.
func (c *Comm) SetErrhandler(h Errhandler) { c.base.SetHandler(h) }

// Errhandler returns the handler of c, or nil if none was set.
func (c *Comm) Errhandler() Errhandler {
	h, _ := c.base.Handler().(Errhandler)
	return h
}

// compares reports whether the ranks of c compare their calls. c may be nil.
func (c *Comm) compares() bool { return c != nil && c.world.checks }

// agree compares call with the calls of the other ranks, if checks are on. invalid is the reason why
// this rank rejects its arguments, or nil; agree returns it after it has sent the reason to the
// other ranks. For a nonblocking call, agree only starts the comparison.
func (c *Comm) agree(op string, call calls.Call, invalid error) error {
	return errorOf(op, core.Agree(&c.base, op, call, invalid))
}

// failf returns the error of function op on c.
func (c *Comm) failf(class Class, op, format string, args ...any) error {
	return c.handle(&Error{Class: class, Op: op, Detail: fmt.Sprintf(format, args...)})
}

// wrap returns the *Error of function op on c for an error from a lower layer. It returns nil, and
// an *Error that was already handled, unchanged.
func (c *Comm) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return c.wrapped(op, err)
}

// wrapped is wrap for a non-nil error. It is a separate function so that wrap is inlined, which
// keeps messages cheap.
func (c *Comm) wrapped(op string, err error) error {
	var ready *Error
	if !errors.As(err, &ready) {
		return converted(op, c.core().Translate(err))
	}
	if ready.handled {
		return err
	}
	return c.handle(ready)
}

// handle completes an error of c that is about to be returned, and passes it to the error handler.
func (c *Comm) handle(err *Error) error {
	err.Rank, err.handled = c.Rank(), true
	if h := c.Errhandler(); h != nil {
		return h(c, err)
	}
	return err
}
