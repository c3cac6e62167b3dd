package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/words"

// Mode and the others, which describe messages and calls, are the same on both sides.
type (
	Mode          = words.Mode
	Status        = words.Status
	TruncateError = words.TruncateError
	Unmatched     = words.Unmatched
	Checkpoint    = words.Checkpoint
	Call          = words.Call
	Waiting       = words.Waiting
)

// Constants of package words.
const (
	AnySource   = words.AnySource
	AnyTag      = words.AnyTag
	NewsTag     = words.NewsTag
	Standard    = words.Standard
	Synchronous = words.Synchronous
	Ready       = words.Ready
	Sending     = words.Sending
	Probing     = words.Probing
	Operating   = words.Operating
)

// Errors of package words.
var (
	ErrClosed     = words.ErrClosed
	ErrReplicated = words.ErrReplicated
	ErrNews       = words.ErrNews
)
