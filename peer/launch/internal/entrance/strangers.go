package entrance

import (
	"net"
	"net/netip"
	"slices"
)

// maxStrangers is how many connections may have shown nothing yet.
const maxStrangers = 64

// strangers are the connections that have shown nothing yet, in the order in which they came. Nobody is turned
// away: when there are too many, another one goes.
type strangers []stranger

type stranger struct {
	from netip.Prefix
	conn net.Conn
}

// add lets one more in, and closes one that is superfluous then.
func (s *strangers) add(c net.Conn) {
	*s = append(*s, stranger{origin(c.RemoteAddr()), c})
	if len(*s) > maxStrangers {
		i := s.superfluous()
		(*s)[i].conn.Close()
		*s = slices.Delete(*s, i, i+1)
	}
}

// superfluous returns who is to go: of those from where most have come, who has waited longest. So nobody takes the
// places of others, and who is quick is let in however many are not.
func (s *strangers) superfluous() int {
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

// remove forgets one that is no stranger any more.
func (s *strangers) remove(c net.Conn) {
	*s = slices.DeleteFunc(*s, func(one stranger) bool { return one.conn == c })
}

// origin is what counts as the same place: an address of IPv4, or a /56 of IPv6, which is one customer's.
func origin(a net.Addr) netip.Prefix {
	ip := a.(*net.TCPAddr).AddrPort().Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 56
	}
	p, _ := ip.Prefix(bits) // no address is shorter
	return p
}
