package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/words"

type (
	// Mode is the send mode of package words.
	Mode = words.Mode
	// Status is the message status of package words.
	Status = words.Status
	// TruncateError is the error of package words for a receive buffer that is too short.
	TruncateError = words.TruncateError
	// Unmatched is the unmatched message of package words.
	Unmatched = words.Unmatched
	// Checkpoint describes a program checkpoint, as in package words.
	Checkpoint = words.Checkpoint
	// CallKind is the kind of a Call of package words.
	CallKind = words.CallKind
	// Call is the waiting call of package words.
	Call = words.Call
	// Waiting is the summary of waiting calls of package words.
	Waiting = words.Waiting
)

// Constants of package words.
const (
	AnySource   = words.AnySource
	AnyTag      = words.AnyTag
	NoticeTag   = words.NoticeTag
	Standard    = words.Standard
	Synchronous = words.Synchronous
	Ready       = words.Ready
	Sending     = words.Sending
	Receiving   = words.Receiving
	Probing     = words.Probing
	Operating   = words.Operating
)

// Errors of package words.
var (
	ErrClosed     = words.ErrClosed
	ErrReplicated = words.ErrReplicated
	ErrNotice     = words.ErrNotice
)
