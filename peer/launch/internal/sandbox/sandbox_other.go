//go:build !linux

package sandbox

import "syscall"

// why there are no walls.
const why = "this system is not Linux"

// Outer does nothing: only Linux has namespaces.
func Outer(*syscall.SysProcAttr) {}

// Inner does nothing: only Linux has namespaces.
func Inner(*syscall.SysProcAttr) {}

// HandOver does nothing: the program is the peer's own user.
func HandOver(Plan) error { return nil }

// Guard does nothing: nobody is to be guarded against who is not within walls.
func Guard() error { return nil }

// Enter does nothing: there is nothing to build walls of.
func Enter(Plan) error { return nil }

// Try finds nothing.
func Try(Plan) Report { return Report{NoNamespaces: why, NoLandlock: why, NoSeccomp: why} }
