//go:build !linux

package sandbox

import "syscall"

// why is the reason why no mechanism works.
const why = "this system is not Linux"

// Outer does nothing: only Linux has namespaces.
func Outer(*syscall.SysProcAttr) {}

// Inner does nothing: only Linux has namespaces.
func Inner(*syscall.SysProcAttr) {}

// HandOver does nothing: the program runs as the peer's own user.
func HandOver(Plan) error { return nil }

// Guard does nothing: without a sandbox, the supervisor cannot be protected from the program.
func Guard() error { return nil }

// Enter does nothing: there are no mechanisms.
func Enter(Plan) error { return nil }

// Try reports that no mechanism works.
func Try(Plan) Report { return Report{NoNamespaces: why, NoLandlock: why, NoSeccomp: why} }
