//go:build !linux || 386 || s390x

package channel

import (
	"net"
	"os"
)

// Package syscall does not have recvfrom(2) for 386 and s390x.

// OpenTCP returns a connection for a connected TCP socket. It uses a duplicate of the descriptor, so
// the caller still closes f.
func OpenTCP(f *os.File) (net.Conn, error) { return FromFile(f) }
