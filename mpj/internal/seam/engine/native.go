//go:build !wasip1

package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

// Engine and what belongs to it are of the process's own engine.
type (
	Engine  = engine.Engine
	Request = engine.Request
	Matched = engine.Matched
	Part    = engine.Part
)
