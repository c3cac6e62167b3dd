package collective

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// A Team is the ranks that run an algorithm together, seen from one of them. It
// is for one operation at a time.
type Team struct {
	Engine  *engine.Engine
	Context uint32
	World   []int // world rank of each member; nil: the same
	Rank    int   // of this process
	Size    int
	Levels  *Levels // nil when all members are on one machine, or it does not matter
	Forced  *Forced // nil to choose by the table

	names []int // what errors call each member; nil: its rank
	tag   int32
}

// A MismatchError says that a rank sent another length than its receiver
// expects: the two gave the call different arguments.
type MismatchError struct {
	From, To  int // ranks
	Got, Want int // bytes
	cause     error
}

// Error names both ranks and both lengths.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes where rank %d expects %d", e.From, e.Got, e.To, e.Want)
}

// Unwrap returns the engine's error when the message was too long, or nil.
func (e *MismatchError) Unwrap() error { return e.cause }

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

// up returns the rank k above this one, round the ring; below the one k below.
func (t *Team) up(k int) int   { return (t.Rank + k) % t.Size }
func (t *Team) down(k int) int { return (t.Rank - k + t.Size) % t.Size }

func (t *Team) send(b []byte, dest int) error {
	return t.Engine.Send(t.Context, t.world(dest), t.tag, b, engine.Standard)
}

// recv receives exactly len(b) bytes.
func (t *Team) recv(b []byte, source int) error {
	s, err := t.Engine.Recv(t.Context, t.world(source), t.tag, b)
	return t.exact(s, err, b, source)
}

// exchange sends to one rank and receives exactly len(recv) bytes from another
// at the same time.
func (t *Team) exchange(send []byte, dest int, recv []byte, source int) error {
	s, err := t.Engine.Sendrecv(t.Context, t.world(dest), t.tag, send, t.world(source), t.tag, recv)
	return t.exact(s, err, recv, source)
}

// exact makes an error of a message that does not fill its place.
func (t *Team) exact(s engine.Status, err error, b []byte, source int) error {
	if err == nil && s.Size == len(b) {
		return nil
	}
	return t.mismatch(s, err, len(b), source)
}

func (t *Team) mismatch(s engine.Status, err error, expected, source int) error {
	var long *engine.TruncateError
	if errors.As(err, &long) {
		s = long.Status
	} else if err != nil {
		return err
	}
	return &MismatchError{From: t.name(source), To: t.name(t.Rank), Got: s.Size, Want: expected, cause: err}
}

// part returns the team of some members of t, in the order given. This process
// is one of them.
func (t *Team) part(members []int) *Team {
	p := &Team{Engine: t.Engine, Context: t.Context, Size: len(members), Forced: t.Forced, names: make([]int, len(members)), tag: t.tag}
	p.World = make([]int, len(members))
	for i, m := range members {
		p.World[i], p.names[i] = t.world(m), t.name(m)
		if m == t.Rank {
			p.Rank = i
		}
	}
	return p
}
