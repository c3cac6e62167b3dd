package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

type (
	// Mode is the send mode of package engineapi.
	Mode = engineapi.Mode
	// Status is the message status of package engineapi.
	Status = engineapi.Status
	// TruncateError is the error of package engineapi for a receive buffer that is too short.
	TruncateError = engineapi.TruncateError
	// Unmatched is the unmatched message of package engineapi.
	Unmatched = engineapi.Unmatched
	// Checkpoint describes a program checkpoint, as in package engineapi.
	Checkpoint = engineapi.Checkpoint
	// CallKind is the kind of a Call of package engineapi.
	CallKind = engineapi.CallKind
	// Call is the waiting call of package engineapi.
	Call = engineapi.Call
	// Waiting is the summary of waiting calls of package engineapi.
	Waiting = engineapi.Waiting
)

// Constants of package engineapi.
const (
	AnySource   = engineapi.AnySource
	AnyTag      = engineapi.AnyTag
	NoticeTag   = engineapi.NoticeTag
	Standard    = engineapi.Standard
	Synchronous = engineapi.Synchronous
	Ready       = engineapi.Ready
	Sending     = engineapi.Sending
	Receiving   = engineapi.Receiving
	Probing     = engineapi.Probing
	Operating   = engineapi.Operating
)

// Errors of package engineapi.
var (
	ErrClosed     = engineapi.ErrClosed
	ErrReplicated = engineapi.ErrReplicated
	ErrNotice     = engineapi.ErrNotice
)
