package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

// What describes messages and calls is the same on both sides.
type (
	Mode          = engine.Mode
	Status        = engine.Status
	TruncateError = engine.TruncateError
	Unmatched     = engine.Unmatched
	Checkpoint    = engine.Checkpoint
	Call          = engine.Call
	Waiting       = engine.Waiting
)

// Constants of package engine.
const (
	AnySource   = engine.AnySource
	AnyTag      = engine.AnyTag
	NewsTag     = engine.NewsTag
	Standard    = engine.Standard
	Synchronous = engine.Synchronous
	Ready       = engine.Ready
	Sending     = engine.Sending
	Probing     = engine.Probing
	Operating   = engine.Operating
)

// Errors of package engine.
var (
	ErrClosed     = engine.ErrClosed
	ErrReplicated = engine.ErrReplicated
	ErrNews       = engine.ErrNews
)
