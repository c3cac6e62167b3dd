//go:build !linux

package channel

import (
	"fmt"
	"net"
	"os"
)

// A Socket is one end of a connected Unix socket.
type Socket struct{ *net.UnixConn }

// OpenSocket returns the Socket of a connected descriptor. It works on a
// duplicate: the caller still closes f.
func OpenSocket(f *os.File) (*Socket, error) {
	conn, err := FromFile(f)
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("channel from descriptor: a %s socket", conn.LocalAddr().Network())
	}
	return &Socket{unix}, nil
}

func (s *Socket) writeAll(parts [][]byte) (int64, error) {
	v := net.Buffers(parts)
	return v.WriteTo(s.UnixConn)
}
