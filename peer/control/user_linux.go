package control

import (
	"net"

	"golang.org/x/sys/unix"
)

// userOf returns the user ID of the process that opened a connection over a Unix socket.
func userOf(conn net.Conn) (user int, known bool) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	var who *unix.Ucred
	err = raw.Control(func(fd uintptr) { who, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || who == nil {
		return 0, false
	}
	return int(who.Uid), true
}
