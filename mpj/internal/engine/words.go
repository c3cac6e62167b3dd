package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/words"

type (
	// Mode is that of package words.
	Mode = words.Mode
	// Status is that of package words.
	Status = words.Status
	// TruncateError is that of package words.
	TruncateError = words.TruncateError
	// Unmatched is that of package words.
	Unmatched = words.Unmatched
	// Checkpoint is that of package words.
	Checkpoint = words.Checkpoint
	// CallKind is that of package words.
	CallKind = words.CallKind
	// Call is that of package words.
	Call = words.Call
	// Waiting is that of package words.
	Waiting = words.Waiting
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
