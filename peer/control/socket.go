package control

import (
	"context"
	"net"
	"os"
)

// listenUnix listens on a socket that only the owner can connect to. The home's own mode keeps other users
// out until the socket's mode is set.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// An ownersListener accepts connections only from root and from the user that runs this process. It
// protects homes that the owner has made accessible to other users. If the system does not report the
// user, it accepts the connection.
type ownersListener struct{ net.Listener }

// Accept returns the owner's next connection.
func (l ownersListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if user, known := userOf(conn); !known || user == 0 || user == os.Geteuid() {
			return conn, nil
		}
		conn.Close()
	}
}
