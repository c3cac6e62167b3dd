//go:build !linux

package control

import "net"

// userOf reports that the user is not known.
func userOf(net.Conn) (user int, known bool) { return 0, false }
