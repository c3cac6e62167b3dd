//go:build !linux

package engine

import "runtime"

// yieldProcessor lets another goroutine run. There are no rings on this system.
func yieldProcessor() { runtime.Gosched() }
