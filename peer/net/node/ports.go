package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// Other peers remember the address of this peer. A port that the system has chosen therefore stays the same
// across restarts, if it is free. So even if all peers restart, they find each other without a supernode.

// RecallPorts returns the addresses to listen on. It replaces port 0 with the port in file, if that port is
// free, and ignores invalid entries.
func RecallPorts(file string, listen []ma.Multiaddr) []ma.Multiaddr {
	var kept map[string]string
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &kept) != nil {
		return listen
	}
	out := slices.Clone(listen)
	for i, asked := range listen {
		a, err := ma.NewMultiaddr(kept[asked.String()])
		if err == nil && withoutPort(a).Equal(asked) && PortsFree([]ma.Multiaddr{a}) == nil {
			out[i] = a
		}
	}
	return out
}

// KeepPorts writes to file the actual address for each address in asked.
func KeepPorts(file string, asked, listens []ma.Multiaddr) error {
	kept := make(map[string]string)
	for _, a := range asked {
		for _, l := range listens {
			if withoutPort(l).Equal(a) {
				kept[a.String()] = l.String()
			}
		}
	}
	data, err := json.Marshal(kept)
	if err == nil {
		err = atomicfile.Write(file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save the ports: %w", err)
	}
	return nil
}

func withoutPort(a ma.Multiaddr) ma.Multiaddr {
	return ma.StringCast(portInAddr.ReplaceAllString(a.String(), "/$1/0")) // valid, because a is
}

// PortsFree returns an error if one of the ports is in use. libp2p itself would start without an error: it shares
// TCP ports (SO_REUSEPORT), as hole punching requires, and needs only one address that works. Two peers could
// therefore listen on the same port, and connections to one would reach the other.
func PortsFree(listen []ma.Multiaddr) error {
	for _, a := range listen {
		network, address, err := manet.DialArgs(a)
		if err != nil || strings.HasSuffix(address, ":0") {
			continue // the system chooses a free port
		}
		if errors.Is(ProbePort(network, address), syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: %w", a, syscall.EADDRINUSE)
		}
	}
	return nil
}

// ProbePort listens on an address for a moment, and returns an error if that fails.
func ProbePort(network, address string) error {
	var probe io.Closer
	var err error
	if strings.HasPrefix(network, "udp") {
		probe, err = new(net.ListenConfig).ListenPacket(context.Background(), network, address)
	} else {
		probe, err = new(net.ListenConfig).Listen(context.Background(), network, address)
	}
	if err != nil {
		return err
	}
	return probe.Close()
}

var portInAddr = regexp.MustCompile(`/(tcp|udp)/[0-9]+`)

// AnyPort replaces the ports of listening addresses with 0, which means any free port.
func AnyPort(listen []ma.Multiaddr) []ma.Multiaddr {
	out := make([]ma.Multiaddr, len(listen))
	for i, a := range listen {
		out[i] = withoutPort(a)
	}
	return out
}
