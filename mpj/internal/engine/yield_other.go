//go:build !linux

package engine

import "runtime"

// yieldProcessor lets another goroutine run. This system has no rings.
func yieldProcessor() { runtime.Gosched() }
