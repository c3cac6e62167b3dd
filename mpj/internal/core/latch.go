//go:build !wasm

package core

import "sync/atomic"

// A latch is a flag that rarely changes and is read in every call.
type latch = atomic.Bool
