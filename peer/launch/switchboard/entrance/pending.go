package entrance

import (
	"net"
	"net/netip"
	"slices"
)

// maxPending bounds the connections that have not shown a token yet.
const maxPending = 64

// pendingConns are the connections that have not shown a token yet, in the order of their arrival. A new
// connection is never refused: if there are too many, another one is closed.
type pendingConns []pendingConn

type pendingConn struct {
	from netip.Prefix
	conn net.Conn
}

// add adds a connection, and closes another one if there are too many.
func (s *pendingConns) add(c net.Conn) {
	*s = append(*s, pendingConn{origin(c.RemoteAddr()), c})
	if len(*s) > maxPending {
		i := s.victim()
		(*s)[i].conn.Close()
		*s = slices.Delete(*s, i, i+1)
	}
}

// victim returns the index of the connection to close: the oldest from the origin with the most
// connections. An origin thus cannot displace others, and a peer that shows its token quickly gets in,
// however many connections are idle.
func (s *pendingConns) victim() int {
	count := make(map[netip.Prefix]int)
	for _, one := range *s {
		count[one.from]++
	}
	most := 0
	for i, one := range *s {
		if count[one.from] > count[(*s)[most].from] {
			most = i
		}
	}
	return most
}

// remove removes a connection that has shown a token or failed.
func (s *pendingConns) remove(c net.Conn) {
	*s = slices.DeleteFunc(*s, func(one pendingConn) bool { return one.conn == c })
}

// origin returns the prefix that counts as one origin: an IPv4 address, or an IPv6 /56, which is usually
// one customer's.
func origin(a net.Addr) netip.Prefix {
	ip := a.(*net.TCPAddr).AddrPort().Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 56
	}
	p, _ := ip.Prefix(bits) // no address is shorter
	return p
}
