package connection

import (
	"net"
	"net/netip"
)

// OwnAddresses returns the addresses of this machine's interfaces, or nil if they cannot be determined.
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
