// Package natpmp implements NAT-PMP (RFC 6886), a port mapping service of home routers, as far as tests need it.
package natpmp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"
)

// Port is the UDP port that a router listens on.
const Port = 5351

// A Mapping maps a port of the router to a port of a machine.
type Mapping struct {
	Protocol string // udp or tcp
	External uint16
	Internal netip.AddrPort
	Lifetime time.Duration // 0 removes the mapping
}

// Operations and result codes.
const (
	opAddress = 0
	opUDP     = 1
	opTCP     = 2
	isReply   = 128

	success     = 0
	unsupported = 5
	resources   = 4
)

// Serve answers requests on conn until conn is closed. external is the router's external address, and add
// creates a mapping at the requested port.
func Serve(conn net.PacketConn, external netip.Addr, add func(Mapping) error) {
	request := make([]byte, 64)
	for {
		n, from, err := conn.ReadFrom(request)
		if err != nil {
			return
		}
		asker, err := netip.ParseAddrPort(from.String())
		if err != nil {
			continue
		}
		if reply := answer(request[:n], asker.Addr(), external, add); reply != nil {
			conn.WriteTo(reply, from)
		}
	}
}

// answer returns the reply to a request of the machine from, or nil if it is not a request.
func answer(request []byte, from, external netip.Addr, add func(Mapping) error) []byte {
	if len(request) < 2 || request[0] != 0 {
		return nil
	}
	switch op := request[1]; {
	case op == opAddress:
		ip := external.As4()
		return append(header(op, success), ip[:]...)
	case (op == opUDP || op == opTCP) && len(request) >= 12:
		m := Mapping{
			Protocol: map[byte]string{opUDP: "udp", opTCP: "tcp"}[op],
			Internal: netip.AddrPortFrom(from, binary.BigEndian.Uint16(request[4:])),
			External: binary.BigEndian.Uint16(request[6:]),
			Lifetime: time.Duration(binary.BigEndian.Uint32(request[8:])) * time.Second,
		}
		result := uint16(success)
		if err := add(m); err != nil {
			result = resources
		}
		return append(header(op, result), request[4:12]...)
	default:
		return header(op, unsupported)
	}
}

// header returns the beginning of a reply.
func header(op byte, result uint16) []byte {
	h := []byte{0, isReply | op}
	h = binary.BigEndian.AppendUint16(h, result)
	return binary.BigEndian.AppendUint32(h, 1) // seconds since the start of the router's mapping table
}
