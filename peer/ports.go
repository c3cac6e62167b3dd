package peer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// Peers remember the address of this one. A port that the system has chosen therefore stays the same across
// restarts if it is free. All peers can then restart and find each other without a supernode.

// recallPorts returns the addresses to listen on. It replaces port 0 by the port in file, if that is free,
// and ignores invalid entries.
func recallPorts(file string, listen []ma.Multiaddr) []ma.Multiaddr {
	var kept map[string]string
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &kept) != nil {
		return listen
	}
	out := slices.Clone(listen)
	for i, asked := range listen {
		a, err := ma.NewMultiaddr(kept[asked.String()])
		if err == nil && withoutPort(a).Equal(asked) && portsFree([]ma.Multiaddr{a}) == nil {
			out[i] = a
		}
	}
	return out
}

// keepPorts writes to file the actual address for each address in asked.
func keepPorts(file string, asked, listens []ma.Multiaddr) error {
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
		return fmt.Errorf("keep the ports: %w", err)
	}
	return nil
}

// withoutPort returns the address with port 0.
func withoutPort(a ma.Multiaddr) ma.Multiaddr {
	return ma.StringCast(portInAddr.ReplaceAllString(a.String(), "/$1/0")) // valid, as a was
}
