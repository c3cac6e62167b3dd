//go:build !linux

package peer

import "net"

// userOf knows nobody.
func userOf(net.Conn) (user int, known bool) { return 0, false }
