package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/words"

// Mode and the others are those of package words.
type (
	Mode          = words.Mode
	Status        = words.Status
	TruncateError = words.TruncateError
	Unmatched     = words.Unmatched
	Checkpoint    = words.Checkpoint
	CallKind      = words.CallKind
	Call          = words.Call
	Waiting       = words.Waiting
)

// Likewise.
const (
	AnySource   = words.AnySource
	AnyTag      = words.AnyTag
	NewsTag     = words.NewsTag
	Standard    = words.Standard
	Synchronous = words.Synchronous
	Ready       = words.Ready
	Sending     = words.Sending
	Receiving   = words.Receiving
	Probing     = words.Probing
	Operating   = words.Operating
)

// Likewise.
var (
	ErrClosed     = words.ErrClosed
	ErrReplicated = words.ErrReplicated
	ErrNews       = words.ErrNews
)
