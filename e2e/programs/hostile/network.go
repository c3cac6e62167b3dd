//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var network = map[string]attempt{
	"connect with TCP":            dial("tcp", listener),
	"send with UDP":               dial("udp", listener),
	"listen with TCP":             listen("tcp", "127.0.0.1:0"),
	"listen with TCP over IPv6":   listen("tcp6", "[::1]:0"),
	"listen on an abstract name":  listen("unix", "@p2pmpi-planted"),
	"listen in its folder":        listen("unix", "socket"),
	"connect to a path":           func() (string, error) { return dialTo("unix", filepath.Join(*outside, "socket")) },
	"connect to an abstract name": func() (string, error) { return dialTo("unix", "@"+*abstract) },
	"use the control socket":      func() (string, error) { return dialTo("unix", filepath.Join(*home, "control.sock")) },
	"use the container's daemon":  anyOf(func() (string, error) { return dialTo("unix", "/run/docker.sock") }, func() (string, error) { return dialTo("unix", "/run/dbus/system_bus_socket") }),
	"ask a name server":           lookUp,
	"socket of IPv4":              socket(unix.AF_INET, unix.SOCK_STREAM, 0),
	"socket of IPv4, datagrams":   socket(unix.AF_INET, unix.SOCK_DGRAM, 0),
	"socket of IPv6":              socket(unix.AF_INET6, unix.SOCK_STREAM, 0),
	"socket of IPv6, datagrams":   socket(unix.AF_INET6, unix.SOCK_DGRAM, 0),
	"socket of this machine":      socket(unix.AF_UNIX, unix.SOCK_STREAM, 0),
	"socket for raw packets":      socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	"socket of the link layer":    socket(unix.AF_PACKET, unix.SOCK_RAW, 0),
	"socket of SCTP":              socket(unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP),
	"socket to the kernel":        socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
	"socket to the host":          socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	"socket of the kernel's keys": socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	"socket of Bluetooth":         socket(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1),
	"socket of a CAN bus":         socket(unix.AF_CAN, unix.SOCK_RAW, 1),
	"socket of an eBPF fast path": socket(unix.AF_XDP, unix.SOCK_RAW, 0),
	"sockets by io_uring":         call("io_uring_setup", raw(unix.SYS_IO_URING_SETUP, 1, 0)),
}

func dial(network string, to *string) attempt {
	return func() (string, error) { return dialTo(network, *to) }
}

func dialTo(network, to string) (string, error) {
	c, err := new(net.Dialer).DialContext(context.Background(), network, to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_, err = c.Write([]byte("planted"))
	return fmt.Sprintf("a connection to %s: %v", to, err), nil
}

func listen(network, at string) attempt {
	return func() (string, error) {
		l, err := new(net.ListenConfig).Listen(context.Background(), network, at)
		if err != nil {
			return "", err
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
}

func lookUp() (string, error) {
	got, err := net.DefaultResolver.LookupHost(context.Background(), "example.com")
	return fmt.Sprint(got), err
}

func socket(family, kind, protocol int) attempt {
	return call("socket", func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}
