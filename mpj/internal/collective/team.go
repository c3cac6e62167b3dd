package collective

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
	"github.com/p2pmpi/p2pmpi/mpj/internal/platform/engine"
)

// A Team is a set of ranks that run an algorithm together, as seen from one of them. It numbers the
// ranks, and sends and receives messages. The algorithms are functions of a Team (choice.go). A Team
// runs one operation at a time.
type Team struct {
	Engine   *engine.Engine
	Context  uint32
	World    []int // world rank of each member; nil means the identity
	Rank     int   // rank of this process
	Size     int
	Levels   *Levels   // nil if all members are on one machine, or if levels make no difference
	Forced   *Forced   // nil to choose algorithms by the table
	Failures *Failures // nil if failures are not recorded

	names []int // name of each member in errors; nil means its rank
	call  Call
}

// A MismatchError reports that the length of a message differs from the length that the receiver
// expects, because the two ranks passed different arguments.
type MismatchError struct {
	From, To  int // ranks
	Got, Want int // bytes
	cause     error
}

// Error names both ranks and both lengths.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes where rank %d expects %d", e.From, e.Got, e.To, e.Want)
}

// Unwrap returns the engine's error if the message was too long, or nil.
func (e *MismatchError) Unwrap() error { return e.cause }

// An OrderError reports that the sender and the receiver of a message are in different collectives,
// or in the same collective with different roots.
type OrderError struct {
	From, To  int // ranks
	Got, Want Call
}

// Error names both ranks and their calls.
func (e *OrderError) Error() string {
	return fmt.Sprintf("rank %d calls %v where rank %d calls %v", e.From, e.Got, e.To, e.Want)
}

// A Call is an operation with its root. It is the tag of all messages of the operation. Receivers
// accept the next message of a rank with any tag, so that they detect ranks in different calls. If
// they matched by tag, such ranks would hang.
type Call int32

// rooted returns the call of op with a root.
func rooted(op Operation, root int) Call { return Call(op) + Call(operations)*Call(1+root) }

// unrooted returns the call of op without a root.
func unrooted(op Operation) Call { return Call(op) }

// String names the operation, and its root if it has one.
func (c Call) String() string {
	op, root := Operation(c%Call(operations)), c/Call(operations)-1
	switch {
	case c < 0:
		return fmt.Sprintf("an unknown call (%d)", int32(c))
	case root < 0:
		return op.String()
	}
	return fmt.Sprintf("%v with root %d", op, root)
}

func (t *Team) world(rank int) int {
	if t.World == nil {
		return rank
	}
	return t.World[rank]
}

func (t *Team) name(rank int) int {
	if t.names == nil {
		return rank
	}
	return t.names[rank]
}

// up returns the rank k above this one around the ring; down returns the rank k below.
func (t *Team) up(k int) int   { return (t.Rank + k) % t.Size }
func (t *Team) down(k int) int { return (t.Rank - k + t.Size) % t.Size }

func (t *Team) send(b []byte, dest int) error {
	return t.cause(t.Engine.Send(t.Context, t.world(dest), int32(t.call), b, engineapi.Standard))
}

// recv receives exactly len(b) bytes.
func (t *Team) recv(b []byte, source int) error {
	s, err := t.Engine.Recv(t.Context, t.world(source), engineapi.AnyTag, b)
	return t.exact(s, err, b, source)
}

// recvUpTo receives at most len(b) bytes, and returns their number.
func (t *Team) recvUpTo(b []byte, source int) (int, error) {
	s, err := t.Engine.Recv(t.Context, t.world(source), engineapi.AnyTag, b)
	if err == nil && Call(s.Tag) == t.call {
		return s.Size, nil
	}
	return 0, t.mismatch(s, err, len(b), source)
}

// exchange sends to one rank and, at the same time, receives exactly len(recv) bytes from another.
func (t *Team) exchange(send []byte, dest int, recv []byte, source int) error {
	s, err := t.Engine.Swap(t.Context, int32(t.call), t.world(dest), send, t.world(source), recv)
	return t.exact(s, err, recv, source)
}

// exact returns an error if the message belongs to another call or does not fill b.
func (t *Team) exact(s engineapi.Status, err error, b []byte, source int) error {
	if err == nil && s.Size == len(b) && Call(s.Tag) == t.call {
		return nil
	}
	return t.mismatch(s, err, len(b), source)
}

func (t *Team) mismatch(s engineapi.Status, err error, expected, source int) error {
	var long *engineapi.TruncateError
	if errors.As(err, &long) {
		s = long.Status
	} else if err != nil {
		return t.cause(err)
	}
	if err := t.sameCall(s, source); err != nil {
		return err
	}
	return &MismatchError{From: t.name(source), To: t.name(t.Rank), Got: s.Size, Want: expected, cause: err}
}

// sameCall returns an error if the message of s does not belong to this call.
func (t *Team) sameCall(s engineapi.Status, source int) error {
	switch {
	case Call(s.Tag) == t.call:
		return nil
	case s.Tag == noticeTag:
		return t.reason(s.Source)
	}
	return &OrderError{From: t.name(source), To: t.name(t.Rank), Got: Call(s.Tag), Want: t.call}
}

// part returns the team of some members of t, in the given order. This process must be one of them.
func (t *Team) part(members []int) *Team {
	p := &Team{Engine: t.Engine, Context: t.Context, Size: len(members), Forced: t.Forced, names: make([]int, len(members)), call: t.call}
	p.World = make([]int, len(members))
	for i, m := range members {
		p.World[i], p.names[i] = t.world(m), t.name(m)
		if m == t.Rank {
			p.Rank = i
		}
	}
	return p
}
