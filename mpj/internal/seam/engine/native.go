//go:build !wasip1

package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

type (
	// Engine is that of package engine.
	Engine = engine.Engine
	// Request is that of package engine.
	Request = engine.Request
	// Matched is that of package engine.
	Matched = engine.Matched
	// Part is that of package engine.
	Part = engine.Part
)
