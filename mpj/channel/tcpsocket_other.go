//go:build !linux || 386 || s390x

package channel

import (
	"net"
	"os"
)

// Package syscall does not have recvfrom(2) for 386 and s390x.

// OpenTCP returns a connection of a connected TCP socket. It works on a
// duplicate: the caller still closes f.
func OpenTCP(f *os.File) (net.Conn, error) { return FromFile(f) }
