//go:build !linux

package channel

import (
	"net"
	"os"
)

// OpenTCP returns a connection of a connected TCP socket. It works on a
// duplicate: the caller still closes f.
func OpenTCP(f *os.File) (net.Conn, error) { return FromFile(f) }
