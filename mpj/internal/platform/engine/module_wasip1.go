package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/guest"

// The methods of these types call the host's engine.
type (
	Engine  = guest.Engine
	Request = guest.Request
	Matched = guest.Matched
	Part    = guest.Part
)
