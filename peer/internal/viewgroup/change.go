package viewgroup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Change is one step from a view to the next. It means the same in every view:
// where it has happened already, or cannot any more, it changes nothing.
type Change struct {
	Process view.Process
	To      view.State // Live: it joins its rank; Finished; Failed
	// Since is not 0 if Process, which is live, becomes the master of its rank: View.Since
	// of the rank in the view that this was asked for in. Once there is another master it
	// means nothing any more.
	Since uint64
}

// String says what happens, as a sentence without its end.
func (c Change) String() string {
	if c.Since != 0 {
		return fmt.Sprintf("%v is master", c.Process)
	}
	return fmt.Sprintf("%v is %v", c.Process, c.To)
}

// Apply returns the view after c. changed is false when v is it already.
func (c Change) Apply(v view.View) (next view.View, changed bool) {
	switch {
	case c.Since != 0:
		if !v.Contains(c.Process) || v.Since[c.Process.Rank] != c.Since {
			return v, false
		}
		return v.Promote(c.Process)
	case c.To != view.Live:
		return v.With(c.Process, c.To)
	}
	if next, p, joins := v.Join(c.Process.Rank); joins && p == c.Process {
		return next, true
	}
	return v, false
}

// maxChange bounds an encoded Change, in bytes.
const maxChange = 1 + 2*binary.MaxVarintLen32 + binary.MaxVarintLen64

var errChange = errors.New("not a change of a view")

// encode returns the one form of c in the log.
func (c Change) encode() []byte {
	b := append(make([]byte, 0, maxChange), byte(c.To))
	b = binary.AppendUvarint(b, uint64(c.Process.Rank))
	b = binary.AppendUvarint(b, uint64(c.Process.Replica))
	return binary.AppendUvarint(b, c.Since)
}

// decodeChange reads what encode writes, and nothing else.
func decodeChange(b []byte) (c Change, err error) {
	if len(b) < 4 || len(b) > maxChange {
		return c, fmt.Errorf("%w: %d bytes", errChange, len(b))
	}
	rank, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return c, errChange
	}
	replica, m := binary.Uvarint(b[1+n:])
	if m <= 0 || rank >= view.MaxProcesses || replica >= view.MaxProcesses {
		return c, errChange
	}
	since, k := binary.Uvarint(b[1+n+m:])
	if k <= 0 {
		return c, errChange
	}
	c = Change{view.Process{Rank: int(rank), Replica: int(replica)}, view.State(b[0]), since}
	if c.To > view.Failed || c.Since != 0 && c.To != view.Live || string(c.encode()) != string(b) {
		return Change{}, errChange
	}
	return c, nil
}
