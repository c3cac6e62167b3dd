package connection

import (
	"net"
	"net/netip"
)

// OwnAddresses returns those of this machine's interfaces, or none if they cannot be had.
func OwnAddresses() (own []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, ip.Unmap())
			}
		}
	}
	return own
}
