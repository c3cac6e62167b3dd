//go:build !linux

package peer

import "net"

// userOf reports that the user is not known.
func userOf(net.Conn) (user int, known bool) { return 0, false }
