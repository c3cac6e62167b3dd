package view

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Change is one step from a view to the next. A change that has already been applied, or is not possible in a
// view, has no effect. Since and At restrict a change to the views in which the reason for it still holds.
type Change struct {
	Process Process
	To      State // Finished, Failed, or Live for a process that joins its rank
	// Since is not 0 if Process, which is live, becomes the master of its rank. It is then the value of View.Since
	// for the rank in the view on which the request was based. The change has no effect if the rank has had
	// another master since.
	Since uint64
	// Aside sets Process aside. The change has no effect unless Process was last set aside, or last returned, in
	// epoch At. At is 0 if Process has never been set aside (see View.SetAside).
	Aside bool
	// At, if Process is live, Aside is false and At is not 0, is the epoch in which Process was set aside; the
	// change lets Process count again. It relies on the statement of the master whose term began in epoch Since
	// (see View.Return). If To is Failed and At is not 0, Process leaves, since another replica of its rank stays.
	// At is then the number of that replica plus one. The change has no effect if that replica has failed or is
	// set aside.
	At uint64
}

// Joins reports whether a process joins its rank.
func (c Change) Joins() bool { return c.To == Live && c.Since == 0 && !c.Aside }

// Returns reports whether a process that was set aside counts again.
func (c Change) Returns() bool { return c.To == Live && c.At != 0 && !c.Aside }

// Leaves reports whether a process leaves because the others of its rank can continue without it.
func (c Change) Leaves() bool { return c.To == Failed && c.At != 0 }

// stays reports whether the replica stays on which c, by which a process leaves, relies.
func (c Change) stays(v View) bool {
	if c.At > uint64(v.R) {
		return false
	}
	p := Process{Rank: c.Process.Rank, Replica: int(c.At) - 1}
	return p != c.Process && v.Has(p) && v.AsideSince(p) == 0
}

// Promotes reports whether a process becomes the master of its rank.
func (c Change) Promotes() bool { return c.Since != 0 && c.At == 0 }

// Valid reports whether c is possible in some view.
func (c Change) Valid() bool {
	switch {
	case c.To > Failed || c.To != Live && (c.Since != 0 || c.Aside):
		return false
	case c.Aside:
		return c.Since == 0
	}
	return c.At == 0 || c.Since != 0 || c.To == Failed
}

// String describes the change, as a sentence without its full stop.
func (c Change) String() string {
	switch {
	case c.Aside:
		return fmt.Sprintf("%v is aside", c.Process)
	case c.Returns():
		return fmt.Sprintf("%v counts again", c.Process)
	case c.Since != 0:
		return fmt.Sprintf("%v is master", c.Process)
	case c.Leaves():
		return fmt.Sprintf("%v leaves", c.Process)
	}
	return fmt.Sprintf("%v is %v", c.Process, c.To)
}

// Apply returns the view after c. changed is false if c has no effect on v.
func (c Change) Apply(v View) (next View, changed bool) {
	switch {
	case c.Aside:
		return v.SetAside(c.Process, c.At)
	case c.Returns():
		return v.Return(c.Process, c.At, c.Since)
	case c.Since != 0:
		if !v.Contains(c.Process) || v.Since[c.Process.Rank] != c.Since {
			return v, false
		}
		return v.Promote(c.Process)
	case c.Leaves() && !c.stays(v):
		return v, false
	case c.To != Live:
		return v.With(c.Process, c.To)
	}
	if next, p, joins := v.Join(c.Process.Rank); joins && p == c.Process {
		return next, true
	}
	return v, false
}

// maxChange bounds an encoded Change, in bytes.
const maxChange = 1 + 2*binary.MaxVarintLen32 + 2*binary.MaxVarintLen64

// asideFlag is a flag in the first byte of an encoded Change that sets a process aside.
const asideFlag = 1 << 4

var errChange = errors.New("malformed view change")

// Encode returns the canonical encoding of c.
func (c Change) Encode() []byte {
	first := byte(c.To)
	if c.Aside {
		first |= asideFlag
	}
	b := append(make([]byte, 0, maxChange), first)
	b = binary.AppendUvarint(b, uint64(c.Process.Rank))
	b = binary.AppendUvarint(b, uint64(c.Process.Replica))
	b = binary.AppendUvarint(b, c.Since)
	if c.At != 0 {
		b = binary.AppendUvarint(b, c.At)
	}
	return b
}

// DecodeChange decodes a change. It accepts only the canonical encoding.
func DecodeChange(b []byte) (c Change, err error) {
	if len(b) < 4 || len(b) > maxChange {
		return c, fmt.Errorf("%w: %d bytes", errChange, len(b))
	}
	rank, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return c, errChange
	}
	replica, m := binary.Uvarint(b[1+n:])
	if m <= 0 || rank >= MaxProcesses || replica >= MaxProcesses {
		return c, errChange
	}
	since, k := binary.Uvarint(b[1+n+m:])
	if k <= 0 {
		return c, errChange
	}
	c = Change{Process: Process{Rank: int(rank), Replica: int(replica)}, To: State(b[0] &^ asideFlag), Since: since, Aside: b[0]&asideFlag != 0}
	if rest := b[1+n+m+k:]; len(rest) > 0 {
		c.At, _ = binary.Uvarint(rest)
	}
	if !c.Valid() || string(c.Encode()) != string(b) {
		return Change{}, errChange
	}
	return c, nil
}
