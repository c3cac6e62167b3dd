//go:build !wasip1

package engine

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

type (
	// Engine is the type of package engine.
	Engine = engine.Engine
	// Request is the type of package engine.
	Request = engine.Request
	// Matched is the type of package engine.
	Matched = engine.Matched
	// Part is the type of package engine.
	Part = engine.Part
)
