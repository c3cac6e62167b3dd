//go:build !wasm

package core

import "sync/atomic"

// A latch is a flag that is set once and read in every call.
type latch = atomic.Bool
